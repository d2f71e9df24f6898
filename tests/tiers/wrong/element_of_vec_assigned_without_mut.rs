// expect: E0596
let v = vec![1, 2];
v[0] = 5;
