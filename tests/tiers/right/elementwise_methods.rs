let x = linspace(-1.0, 1.0, 5);
x.tanh()
// %%
x.exp()
// %%
x.abs().sqrt()
// %%
x.sin() + x.cos()
// %%
x.sign()
// %%
(x.floor(), x.ceil(), x.round()).0
// %%
(&x * 10.0).round()
// %%
x.pow(2.0)
// %%
x.maximum(0.0)
// %%
x.minimum(&x.flip(0))
// %%
x.atan2(1.0)
// %%
x.relu()
// %%
x.sigmoid()
// %%
x.clip(-0.5, 0.5)
// %%
x.log1p().isinf()
// %%
x.expm1()
// %%
x.square()
// %%
x.reciprocal()
// %%
x.neg()
// %%
x.erf()
