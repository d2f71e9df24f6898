let dense = jit(|[x, w]| x.dot(w).tanh());
let net = jit(move |[x, a, b]| dense([&dense([x, a]), b]).sum());
let x = ones([1, 2]);
let a = full([2, 3], 0.5);
let b = full([3, 1], 0.25);
println!("{:.5}", net([&x, &a, &b]).item());
// %%
fn act(x: &Array) -> Array {
    x.maximum(0.0)
}
fn layer(x: &Array, w: &Array) -> Array {
    act(&x.dot(w))
}
let two = jit(|[x, a, b]| layer(&layer(x, a), b));
two([&x, &a, &b])
// %%
let depth = 3;
let deep = jit(move |[x]| {
    let mut h = x + 0.0;
    for i in 0..depth {
        if i % 2 == 0 {
            h = h * 2.0;
        } else {
            h = &h + 1;
        }
    }
    h
});
deep([&ones([2])])
// %%
let by_shape = jit(|[x]| if x.len() > 2 { x.sum() } else { x.max() });
(by_shape([&ones([4])]).item(), by_shape([&ones([2])]).item())
// %%
fn make(scale: f64) -> Jit<1, Array> {
    jit(move |[x]| x * scale)
}
let triple = make(3.0);
triple([&ones([2])])
// %%
let steps: Vec<Jit<1, Array>> = (1..4).map(|k| jit(move |[x]| x * k)).collect();
let mut y = ones([1]);
for step in &steps {
    y = step([&y]);
}
y.item()
// %%
fn pair([x, y]: [&Array; 2]) -> (Array, Array) {
    (x.maximum(y), x.minimum(y))
}
let both = jit(pair);
let (hi, lo) = both([&array([1.0, 5.0]), &array([3.0, 2.0])]);
println!("{hi} {lo}");
// %%
let unused = jit(|[x, _]| x * 2.0);
unused([&ones([1]), &zeros([3])]).item()
// %%
let same = jit(|[x]| x.clone());
same([&full([2], 4.0)])
// %%
let consts = jit(|[x]| (x.zeros_like() + 1.0, full([2], 3.0)));
let (p, q) = consts([&ones([2])]);
println!("{p} {q}");
// %%
let by_hand = |[x]: [&Array; 1]| x.exp();
let jitted = jit(by_hand);
(by_hand([&zeros([1])]) - jitted([&zeros([1])])).item()
