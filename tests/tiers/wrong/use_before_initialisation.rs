// expect: E0381
let x: i32;
x + 1
