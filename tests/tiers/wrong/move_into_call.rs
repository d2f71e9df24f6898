// expect: E0382
let step = jit(|[w, g]| w - g);
let w = ones([2]);
let g = ones([2]);
// %%
let v = step.call((w, &g));
w.sum()
