// expect: E0596
let mut n = 0;
let tick = move || n += 1;
tick();
