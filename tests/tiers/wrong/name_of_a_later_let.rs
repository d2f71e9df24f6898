// expect: E0425
let a = b + 1;
let b = 2;
