// expect: E0277
let x = 2.0;
let n = 3;
x * n
