// expect: E0382
let x = ones([2]);
let f = jit(|[a, b]| a + b);
f.call((x, &x)).len()
