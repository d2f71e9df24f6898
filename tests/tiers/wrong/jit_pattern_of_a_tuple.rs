// expect: E0308
let f = jit(|(x, y)| x + y);
