// expect: E0507
let x = ones([2]);
let f = jit(move |[y]| x + y);
