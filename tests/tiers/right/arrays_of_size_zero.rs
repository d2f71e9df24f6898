let e = zeros([0]);
e
// %%
(e.sum().item(), e.len(), e.prod().item(), e.nbytes())
// %%
zeros([0, 3]).sum_axis(0)
// %%
(&e + 1.0).shape()
// %%
concatenate([&e, &ones([2])], 0)
// %%
zeros([2, 0]).dot(&zeros([0, 3]))
// %%
e.to_vec::<f32>()
// %%
let f = jit(|[x]| x.tanh() * 2.0);
f([&e]).shape()
// %%
ones([3]).slice(1..1).shape()
