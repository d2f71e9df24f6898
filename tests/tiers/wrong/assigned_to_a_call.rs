// expect: E0070
let v = vec![1];
v.len() = 5;
