let x = array([1.0, 2.0]);
x.clone() * -1
// %%
2.0 * -&x
// %%
-(-&x)
// %%
(&x) + (1.0)
// %%
&x + &x.exp() * 0.0
// %%
&(&x + 1.0) * &(&x - 1.0)
// %%
x.sum() * &x + x.max()
// %%
let r = &x;
r + r
// %%
let rr = &r;
*rr * 2.0
// %%
let k = 3;
let f = 0.5;
k * &x + f * &x - k
// %%
&x * k as f64
// %%
(1.0 + x.sum()) / 2.0
// %%
let y = &x + 1.0 + 1 + &x + x.clone();
y
// %%
x.add(1.0).mul(&x).sub(2)
// %%
-&x + 1.0 - -2.0
// %%
1 - (2 - &x)
// %%
let z = { &x * 2.0 } + { 1.0 };
z
// %%
if true { &x + 0.0 } else { x.exp() }
// %%
[&x + 1.0, &x * 2.0].iter().map(|a| a.sum().item()).sum::<f64>()
