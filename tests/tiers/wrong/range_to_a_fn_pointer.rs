// expect: E0308
let k = 3;
let f: fn(i32) -> i32 = |x| x + k;
