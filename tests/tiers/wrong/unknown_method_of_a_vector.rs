// expect: E0599
let v = vec![1, 2];
v.append_all(3)
