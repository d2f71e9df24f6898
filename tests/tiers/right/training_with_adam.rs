let w = array([1.0, -2.0]);
let g = array([0.5, 0.25]);
let state = adam_init(&w);
println!("{} {} {}", state.0, state.1, state.2);
let (w1, state) = adam(&w, &g, &state, 0.1);
println!("{w1} {} {}", state.0, state.2);
let (w2, state) = adamw(&w1, &g, &state, full((), 0.1), 0.01);
println!("{w2} {}", state.2);
println!("{}", sgd(&w, &g, 2));
// %%
let logits = array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]);
println!("{}", cross_entropy(&logits, array([2, 0])));
println!("{}", grad(|[l]| cross_entropy(l, array([2, 0])))([&logits]));
// %%
let loss = value_and_grad_tree(|(w, b): &(Array, Array), [x, y]| cross_entropy(x.dot(w) + b, y));
let step = jit_update(move |(p, s): &((Array, Array), ((Array, Array), (Array, Array), Array)), [x, y, lr]| {
    let (l, d) = loss(p, [x, y]);
    (adam(p, &d, s, lr), l)
});
let x = array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]);
let y = array([0, 1, 0, 1]);
let p = (zeros([2, 2]), zeros([2]));
let s = adam_init(&p);
let mut all = (p, s);
let mut last = 10.0;
for _ in 0..30 {
    let l;
    (all, l) = step(all, [&x, &y, &full((), 0.05)]);
    assert!(l.item() < last);
    last = l.item();
}
let ((w, b), (m, v, count)) = all;
println!("{count} {:.3}", last);
