// expect: E0384
let x = 1;
// %%
x = 2;
