zeros([2, 3])
// %%
(zeros([2, 3]).shape(), ones(4).shape(), full((), 2.0).shape(), zeros([0, 3]).len())
// %%
ones([3])
// %%
full([2, 2], 7)
// %%
full([2], 0.1)
// %%
let n = 3;
zeros([n, n + 1]).shape()
// %%
let m = vec![1, 2, 3].len();
zeros([m, 2]).shape()
// %%
zeros_as(U8, [4])
// %%
ones_as(F64, [2]).dtype()
// %%
full_as(BF16, [2], 1.0).dtype()
// %%
arange(5)
// %%
arange(2..6)
// %%
arange_as(I32, 2..=6)
// %%
linspace(0.0, 1.0, 5)
// %%
eye(3)
// %%
arange_step(0.0, 1.0, 0.25)
// %%
iota_as(I32, [2, 3], 1)
// %%
array([[1.0, 2.0], [3.0, 4.0]])
// %%
array([1, 2, 3]).dtype()
// %%
array([true, false])
// %%
array(vec![1.5, 2.5])
// %%
array(3.5)
// %%
array_as(F64, [1.0, 2.5])
// %%
from_vec(vec![1.0, 2.0, 3.0, 4.0], [2, 2])
// %%
from_vec(vec![1u8, 2, 3], [3]).dtype()
// %%
let x = ones([2, 3]);
(x.shape(), x.dtype(), x.len(), x.ndim(), x.rank(), x.nbytes())
// %%
zeros_like(&x).shape()
// %%
x.full_like(5.0)
