// expect: E0373
let w = ones([2]);
let f = jit(|[x]| x * &w);
