// expect: E0503
let mut n = 1;
let mut f = || n += 1;
let m = n + 1;
f();
