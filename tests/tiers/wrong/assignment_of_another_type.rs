// expect: E0308
let mut n = 1;
n = 2.5;
