// expect: E0382
let mut v = vec![1];
let w = vec![2];
v.extend(w);
w.len()
