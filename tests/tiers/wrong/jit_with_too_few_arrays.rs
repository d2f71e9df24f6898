// expect: E0308
let f = jit(|[x, y]| x + y);
let x = ones([2]);
f([&x])
