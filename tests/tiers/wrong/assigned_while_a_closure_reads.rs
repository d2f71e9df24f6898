// expect: E0506
let mut n = 1;
let f = || n + 1;
n = 5;
f();
