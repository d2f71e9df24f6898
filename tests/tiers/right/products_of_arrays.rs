let a = array([[1.0, 2.0], [3.0, 4.0]]);
let b = array([[5.0, 6.0], [7.0, 8.0]]);
a.dot(&b)
// %%
a.matmul(&b)
// %%
a.dot(&array([1.0, 1.0]))
// %%
array([1.0, 2.0]).dot(&array([3.0, 4.0]))
// %%
dot(&a, &b)
// %%
a.dot(b.t())
// %%
array([1.0, 2.0]).outer(&array([3.0, 4.0]))
// %%
ones([5, 2, 3]).matmul(&ones([3, 4])).shape()
// %%
ones([2, 3]).dot(&ones([3, 4])).sum().item()
// %%
a.dot(&b).dot(&a).tanh()
