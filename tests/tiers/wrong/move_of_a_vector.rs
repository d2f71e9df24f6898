// expect: E0382
let v = vec![1, 2, 3];
let w = v;
v.len()
