// expect: E0596
let mut n = 0;
let tick = || n += 1;
tick();
