let x = ones([256, 1024]);
let y = tanh(&x);
let z = exp(x);
(y.shape(), z.shape())
// %%
let before = memory_stats().bytes_in_use;
let w = tanh(exp(z));
let after = memory_stats().bytes_in_use;
(after as i64 - before as i64, w.len())
// %%
let a = maximum(&w, 0.5);
let b = maximum(1, w);
(a.shape(), b.max().item())
// %%
softmax(matmul(&ones([2, 3]), ones([3, 4])), -1)
// %%
reshape(transpose(ones([2, 3])), [6])
// %%
add(ones([2]), ones([2]))
// %%
mul(2, ones([2]))
// %%
fn seven(x: &Array) -> Array {
    tanh(exp(sin(abs(cos(sqrt(abs(x)))))))
}
seven(&linspace(0.0, 1.0, 3))
