// expect: E0308
let f = jit(|[x]| x + 1.0);
let a = ones([1]);
f(&a)
