let g = grad(|[x]| (x * x).sum());
g([&array([1.0, 2.0, 3.0])])
// %%
let f = |[w, x]: [&Array; 2]| x.dot(w).tanh().sum();
let w = full([3], 0.25);
let x = ones([2, 3]);
let both = value_and_grad(f);
let (l, dw) = both([&w, &x]);
println!("{:.5} {:.5}", l.item(), dw.sum().item());
// %%
let [dx, dw] = grad_wrt([1, 0], f)([&w, &x]);
println!("{:?} {:?}", dx.shape(), dw.shape());
// %%
let all = value_and_grad_wrt([0, -1], f);
let (l, [dw, dx]) = all([&w, &x]);
(l.item() > 0.0, dw.len(), dx.len())
// %%
let (y, back) = vjp(|[x]| x * 3.0, [&x]);
let [dx] = back([&x]);
dx.sum().item()
// %%
let (y, dy) = jvp(|[x]| x * x, [&full([2], 3.0)], [&array([1.0, 2.0])]);
println!("{y} {dy}");
// %%
fn loss([w, x]: [&Array; 2]) -> Array {
    (x.dot(w) - 1.0).square().mean()
}
let step = jit(value_and_grad(loss));
let mut w = zeros([3]);
for _ in 0..3 {
    let (_, dw) = step([&w, &x]);
    w = w - dw * 0.1;
}
w
// %%
let n: Vec<Box<dyn Fn([&Array; 1]) -> Array + Send + Sync>> = vec![grad(|[x]| x.sin().sum()), checkpoint(|[x]| x * 2.0)];
n[1]([&ones([2])])
// %%
let constant = grad(|[x]| (x * stop_gradient(x) + x.stop_gradient()).sum());
constant([&full([2], 4.0)])
