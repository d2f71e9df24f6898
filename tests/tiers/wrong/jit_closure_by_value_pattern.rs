// expect: E0631
let f = jit(|x: Array| x + 1.0);
