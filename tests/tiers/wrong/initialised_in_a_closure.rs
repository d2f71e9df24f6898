// expect: E0381
let x: i32;
let f = || x + 1;
