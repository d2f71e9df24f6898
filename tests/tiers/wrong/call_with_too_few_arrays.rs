// expect: E0277
let f = jit(|[x, y]| x + y);
let x = ones([2]);
f.call((x,))
