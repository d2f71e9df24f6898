// expect: E0609
let f = |n: &(i32, i32)| n.x;
