// expect: E0308
let f = jit(|[x]| x + 1.0);
let x = ones([2]);
f([x])
