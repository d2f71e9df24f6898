// expect: E0599
let n: i32 = 4;
n.sqrt()
