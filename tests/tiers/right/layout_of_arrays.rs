let x = arange(6).reshape([2, 3]);
x
// %%
x.t()
// %%
x.transpose().shape()
// %%
x.reshape([3, -1])
// %%
x.ravel()
// %%
x.slice((0, 1..))
// %%
x.slice((.., -1))
// %%
x.slice(1)
// %%
x.slice((0..1, 0..=1))
// %%
x.at(-1)
// %%
x.flip(1)
// %%
x.expand_dims(0).shape()
// %%
x.expand_dims(-1).squeeze().shape()
// %%
concatenate([&x, &x], 0)
// %%
concatenate(vec![&x, &ones([2, 1])], 1)
// %%
stack([&x, &x], 0).shape()
// %%
stack(&[x.clone(), x.clone()], -1).shape()
// %%
x.pad([(1, 0), (0, 1)], -1.0)
// %%
x.take(array([2, 0]), 1)
// %%
ones([2, 3, 4]).permute([2, 0, 1]).shape()
// %%
ones([2, 3, 4]).swapaxes(0, -1).shape()
// %%
x.dynamic_slice([0, 1], [2, 2])
// %%
zeros([4]).dynamic_update_slice(ones([2]), [1])
// %%
x.tril()
// %%
array([0, 2, 1]).one_hot(3)
// %%
let k = 1usize;
x.slice((0..k, k..3)).shape()
// %%
let parts = split(&x, 3, 1);
(parts.len(), parts[0].shape())
