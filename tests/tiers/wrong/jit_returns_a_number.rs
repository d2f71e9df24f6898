// expect: E0277
let f = jit(|[x]| x.sum().item());
