let x = array([1.0, 0.0, -1.0]);
&x / 0.0
// %%
x.log()
// %%
x.sqrt().isnan()
// %%
(&x / 0.0).max()
// %%
(&x / 0.0).min().item()
// %%
array([f64::NAN, 1.0]).max().item().is_nan()
// %%
array([f64::INFINITY, -f64::INFINITY]).exp()
// %%
(x.sum() / 0).item()
// %%
array([f64::NAN, 1.0]).eq(&array([f64::NAN, 1.0]))
// %%
f64::NAN == array([f64::NAN]).item()
