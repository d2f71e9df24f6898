// expect: E0502
let mut v = vec![1, 2];
v.extend(v.iter());
