// expect: E0284
let f = jit(|x| x[0] + 1.0);
