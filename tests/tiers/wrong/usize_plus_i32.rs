// expect: E0277, E0308
let v = vec![1, 2];
let n: i32 = 3;
v.len() + n
