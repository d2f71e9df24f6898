let xs = linspace(1.0, 4.0, 4);
let (total, sums) = scan(|c, x| (&c + &x, c + x), zeros(()), xs.clone());
println!("{total} {sums}");
let (_, back) = scan_reverse(|c, x| (&c + &x, c + x), zeros(()), xs.clone());
println!("{back}");
// %%
let f = jit(|[w, xs]| {
    let w = w.clone();
    let ((h, n), hs) = scan(
        move |(h, n): (Array, Array), x: Array| {
            let h = (x.dot(&w) + h).tanh();
            ((h.clone(), n + 1), h)
        },
        (zeros([3]), zeros_as(I32, ())),
        xs.clone(),
    );
    (h, n, hs)
});
let (h, n, hs) = f([&ones([2, 3]), &ones([5, 2])]);
println!("{h} {n} {:?}", hs.shape());
// %%
println!("{}", fori_loop(0, 10, |i, x| x * 0.5 + i, ones([3])));
let n = array(4);
println!("{}", fori_loop(1, &n, |i, x: Array| x + i, zeros(())));
let doubled = while_loop(|x: Array| x.max().lt(100.0), |x| x * 2.0, xs.clone());
println!("{doubled}");
let (steps, value) = while_loop(
    |(_, x): (Array, Array)| x.gt(1.0),
    |(n, x)| (n + 1, x / 2.0),
    (zeros_as(I32, ()), full((), 9.0)),
);
println!("{steps} {value}");
// %%
for i in -1..2 {
    let holds = full((), 1.0) * i;
    let y = cond(holds.gt(0.0), |x: Array| x * 2.0, |x| -x, ones([2]));
    println!("{i} {y}");
}
// %%
let loss = |[x]: [&Array; 1]| scan(|c, x| (c * x, ()), ones(()), x.clone()).0;
let g = grad(loss);
println!("{}", g([&xs]));
// %%
let x = linspace(1.0, 6.0, 6).reshape([2, 3]);
println!("{} {}", x.cumsum(1), x.cumsum_reverse(0));
println!("{} {} {}", cumprod(&x, -1), cummax(&x, 0), cummin(&x, 1));
println!("{}", zeros([4]).scatter_add(array([1, 3, 1]), ones([3]), 0));
