let third = grad(|[x]| {
    let second = grad(|[x]| grad(|[x]| (x * x * x * x).sum())([x]).sum());
    second([x]).sum()
});
let x = array([0.5, 1.0]);
third([&x])
// %%
let inside = jit(move |[x]| third([x]));
inside([&x])
// %%
let f = jit(|[x]| (x * x).sum());
let outside = grad(move |a: [&Array; 1]| f(a));
outside([&x])
// %%
let w = full([2], 3.0);
let captured = grad(move |[x]| (x * &w).sum());
captured([&x])
// %%
let h = hessian(|[x]| (x * x * x).sum());
println!("{}", h([&x]));
// %%
let j = jacobian(|[x]| x * x);
println!("{}", j([&x]));
// %%
let rule = custom_vjp(
    |[a, b]| a * b,
    |[a, b]| (a * b, [a.clone()]),
    |[a, ct]| [ct * 10.0, ct * a],
);
let g = grad_wrt([0, 1], move |a: [&Array; 2]| rule(a).sum());
let [da, db] = g([&full([2], 2.0), &x]);
println!("{da} {db}");
