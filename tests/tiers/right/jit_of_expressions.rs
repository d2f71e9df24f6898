let f = jit(|[x, w]| x.dot(w).tanh());
let x = linspace(0.0, 1.0, 6).reshape([2, 3]);
let w = linspace(-1.0, 1.0, 12).reshape([3, 4]);
let y = f([&x, &w]);
y
// %%
f([&x, &w]).sum().item() == y.sum().item()
// %%
let g = jit(|[x]| (x * 2.0 + 1.0).exp().sum());
g([&x])
// %%
g([&w]).item()
// %%
fn loss([w, x]: [&Array; 2]) -> Array {
    let p = x.dot(w);
    (&p * &p).mean()
}
let l = jit(loss);
(l([&w, &x]).item() - loss([&w, &x]).item()).abs() < 1e-5
// %%
fn seven(x: &Array) -> Array {
    tanh(exp(sin(abs(cos(sqrt(abs(x)))))))
}
let s = jit(|[x]| seven(x));
(s([&x]) - seven(&x)).abs().max().item() < 1e-6
// %%
let h = jit(|[x]| {
    let mut t = x * 1.0;
    for i in 0..3 {
        t = t * 0.5 + i;
    }
    t
});
h([&x])
// %%
let typed = |[a, b]: [&Array; 2]| a - b;
let j = jit(typed);
j([&x, &(&x * 2.0)]).sum().item()
// %%
let none = jit(|[x]| select(x.gt(0.5), x, 0.0).sum());
none([&x]).item()
