// expect: E0277
let v = vec![1, 2, 3];
let i = 1i32;
v[i]
