// expect: E0308
let o = Some(1);
let n: i32 = o;
