// expect: E0005
let f = |Some(x): Option<i32>| x;
