tree! {
    #[derive(Clone)]
    struct Layer {
        w: Array,
        b: Array,
    }

    struct Net {
        layers: Vec<Layer>,
        scale: Array,
    }
}
fn layer(inputs: i32, outputs: i32) -> Layer {
    Layer { w: full([inputs, outputs], 0.1), b: zeros([outputs]) }
}
fn forward(net: &Net, x: &Array) -> Array {
    let mut h = x * &net.scale;
    for layer in &net.layers {
        h = (h.dot(&layer.w) + &layer.b).tanh();
    }
    h
}
let net = Net { layers: vec![layer(3, 4), layer(4, 2)], scale: full((), 2.0) };
let x = linspace(0.0, 1.0, 6).reshape([2, 3]);
let f = jit_tree(|net: &Net, [x]| forward(net, x));
println!("{}", f(&net, [&x]));
println!("{}", allclose(f(&net, [&x]), forward(&net, &x)));
// %%
let g = grad_tree(|net: &Net, [x]| forward(net, x).sum());
let d = g(&net, [&x]);
println!("{} {} {}", d.layers.len(), d.layers[1].b, d.scale);
let vg = value_and_grad_tree(|net: &Net, [x, y]| (forward(net, x) - y).square().mean());
let (l, d) = vg(&net, [&x, &ones([2, 2])]);
println!("{l} {}", d.layers[0].w);
// %%
let step = jit_update(move |net: &Net, [x, y, lr]| {
    let (loss, d) = vg(net, [x, y]);
    (sgd(net, &d, lr), loss)
});
let y = full([2, 2], 0.5);
let mut net = net;
let mut losses = vec![];
let lr = full((), 0.2);
for _ in 0..5 {
    let loss;
    (net, loss) = step(net, [&x, &y, &lr]);
    losses.push(loss.item());
}
losses.windows(2).all(|pair| pair[1] < pair[0])
// %%
let pair = (ones([2]), [zeros([2]), ones([2])]);
let sums = jit_tree(|(a, [b, c]): &(Array, [Array; 2]), []| (a + b, vec![b + c]));
let (s, rest) = sums(&pair, []);
println!("{s} {}", rest[0]);
fn loss(w: &Array, [x]: [&Array; 1]) -> Array { (x * w).sum() }
println!("{}", grad_tree(loss)(&ones([2]), [&full([2], 3.0)]));
let ws = vec![ones([2]), ones([2])];
let ds = grad_tree(|ws: &Vec<Array>, [x]| (x * &ws[0] * &ws[1]).sum())(&ws, [&full([2], 3.0)]);
ds.len()
