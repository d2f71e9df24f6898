let scale = 3.0;
let f = jit(move |[x]| x * scale);
f([&ones([2])])
// %%
let table = array([1.0, 10.0, 100.0]);
let g = jit(move |[x]| x + &table);
g([&zeros([3])])
// %%
let k = 2;
let names = vec![1.0, 2.0, 3.0];
let h = jit(move |[x]| {
    let mut t = x * k;
    for n in &names {
        t = t + *n;
    }
    t
});
h([&ones([2])])
// %%
let w = ones([2, 2]);
let kept = w.clone();
let dense = jit(move |[x]| x.dot(&w));
(dense([&ones([1, 2])]).sum().item(), kept.sum().item())
// %%
let outer = jit(move |[x]| dense([x]) * 2.0);
outer([&ones([1, 2])])
