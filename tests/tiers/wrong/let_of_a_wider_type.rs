// expect: E0308
let a: i32 = 1;
let b: i64 = a;
