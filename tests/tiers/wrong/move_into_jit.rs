// expect: E0382
let w = ones([2]);
let f = jit(move |[x]| x * &w);
// %%
w.sum()
