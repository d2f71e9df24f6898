// expect: E0594
let n = 0;
let mut tick = || n += 1;
tick();
