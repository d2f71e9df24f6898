// expect: E0308
let n: i32 = 1.5;
