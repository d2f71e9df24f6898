tree! {
    /// One layer.
    #[derive(Clone)]
    pub struct Layer {
        w: Array,
        b: Array,
    }

    struct Net {
        layers: Vec<Layer>,
        head: (Array, [Array; 2]),
    }

    #[derive(Debug)]
    struct Scale(Array);
}
fn forward(l: &Layer, x: &Array) -> Array { x.dot(&l.w) + &l.b }
let l = Layer { w: ones([2, 2]), b: zeros([2]) };
println!("{}", forward(&l, &ones([1, 2])));
let m = l.clone();
println!("{}", live_arrays().len());
// %%
let step = jit(|[w, b, x]| Layer { w: w - x.sum() * 0.5, b: b + 1.0 });
let n = step([&m.w, &m.b, &ones([2])]);
println!("{} {}", n.w, n.b);
let n = step.call((n.w, n.b, ones([2])));
println!("{} {}", n.w, n.b);
// %%
let both = jit(|[x]| (Scale(x * 2.0), vec![Layer { w: x + 1.0, b: x - 1.0 }, Layer { w: x * 0.0, b: -x }]));
let (s, ls) = both([&ones([1])]);
println!("{} {} {}", s.0, ls[0].w, ls[1].b);
let net = Net { layers: ls, head: (ones([1]), [ones([1]), zeros([1])]) };
println!("{}", &net.layers[0].b + &net.head.1[0]);
let inner = jit(|[x]| Net { layers: vec![Layer { w: x.tanh(), b: x.exp() }], head: (x.clone(), [x.clone(), x * 3.0]) });
let made = inner([&zeros([2])]);
println!("{} {}", made.layers[0].b, made.head.1[1]);
// %%
impl Layer {
    fn norm(&self) -> f64 { (&self.w * &self.w).sum().item() }
}
println!("{}", l.norm());
