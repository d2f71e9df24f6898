let x = array([[1.0, 5.0, 2.0], [7.0, 0.0, 4.0]]);
x.sum()
// %%
(x.sum().item(), x.max().item(), x.min().item(), x.mean().item(), x.prod().item())
// %%
x.sum_axis(0)
// %%
x.sum_axis(-1)
// %%
x.sum_axes([0, 1])
// %%
x.sum_axes([-1])
// %%
x.max_axis_keep(1)
// %%
x.mean_axis_keep(-1).shape()
// %%
x.sum_keep().shape()
// %%
x.argmax()
// %%
x.argmax_axis(1)
// %%
x.argmin_axis(0)
// %%
x.var_axis(1)
// %%
x.std()
// %%
x.norm()
// %%
x.logsumexp_axis(-1)
// %%
x.gt(4.0).any_axis(0)
// %%
x.softmax(-1)
// %%
&x - x.mean_axis_keep(1)
// %%
sum(&x).item() + max(&x).item()
