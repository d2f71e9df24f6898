// expect: E0277, E0308
let a = 1i32;
let b = 2i64;
a + b
