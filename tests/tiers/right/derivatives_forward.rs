let root = |[y]: [&Array; 1]| {
    let y = y.clone();
    let bound = y.clone();
    while_loop(
        move |x: Array| (&x * &x - &bound).abs().max().gt(0.0001),
        move |x: Array| (&x + &y / &x) * 0.5,
        full([2], 1.0),
    )
};
let (value, slope) = jvp(root, [&array([4.0, 9.0])], [&ones([2])]);
println!("{value} {slope}");
// %%
let j = jacfwd(root);
println!("{}", j([&array([4.0, 9.0])]));
// %%
let x = array([0.5, 1.0, 2.0]);
let forward = jacfwd(|[x]| x.slice(0..2) * x.sum());
let back = jacrev(|[x]| x.slice(0..2) * x.sum());
println!("{} {}", forward([&x]), back([&x]));
// %%
let h = hessian(|[x]| (x * x * x).sum());
println!("{}", h([&x]));
// %%
let f = |[x]: [&Array; 1]| (x * x * x).sum();
let g = grad(f);
let (slope, curve) = jvp(|[x]: [&Array; 1]| g([x]), [&x], [&ones([3])]);
println!("{slope} {curve}");
// %%
let with_aux = value_and_grad_aux(|[w, x]| {
    let y = x.dot(w);
    ((&y * &y).sum(), y)
});
let ((loss, y), dw) = with_aux([&x, &ones([2, 3])]);
println!("{loss} {y} {dw}");
// %%
let both = jit(value_and_grad_aux_wrt([1, 0], |[a, b]| ((a * b).sum(), [a.sum(), b.sum()])));
let ((loss, [sa, sb]), [db, da]) = both([&x, &full([3], 2.0)]);
println!("{loss} {sa} {sb} {db} {da}");
