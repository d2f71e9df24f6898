let step = jit(|[w, g]| w - g * 0.1);
let w = ones([4]);
let g = full([4], 2.0);
let w = step.call((w, &g));
w
// %%
let w = step.call((w, &g));
let w = step.call([w, g]);
w.sum().item()
// %%
let many = step.call(vec![&w, &w]);
many.at(0).item()
// %%
let update = jit(|[p, m, g]| {
    let m = m * 0.9 + g;
    (p - &m * 0.5, m)
});
let mut p = ones([3]);
let mut m = zeros([3]);
for _ in 0..3 {
    let grad = &p * 2.0;
    (p, m) = update.call((p, m, &grad));
}
println!("{p} {m}");
// %%
let mib = 1024 * 1024;
let big = ones([mib]);
let before = memory_stats().bytes_in_use;
let half = jit(|[x]| x * 0.5);
let big = half.call((big,));
let big = half.call([big]);
(memory_stats().bytes_in_use == before, big.max().item())
