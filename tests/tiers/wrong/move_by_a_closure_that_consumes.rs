// expect: E0382
let x = ones([2]);
let f = || drop(x);
f();
x.len()
