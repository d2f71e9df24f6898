let f = jit(|[x, y]| (x + y, x - y));
let (s, d) = f([&ones([2]), &full([2], 3.0)]);
println!("{s} {d}");
// %%
let g = jit(|[x]| [x * 1.0, x * 2.0, x * 3.0]);
let [a, b, c] = g([&ones([1])]);
(a.item(), b.item(), c.item())
// %%
let h = jit(|[x]| (x.sum(), [x.max(), x.min()]));
let (total, [top, low]) = h([&arange(4)]);
(total.item(), top.item(), low.item())
// %%
let v = jit(|[x]| vec![x + 1.0, x + 2.0]);
let list = v([&zeros([1])]);
(list.len(), list[1].item())
// %%
let one = jit(|[x]| (x.exp(),));
let (e,) = one([&zeros([1])]);
e.item()
// %%
f([&ones([1]), &ones([1])]).0.item()
