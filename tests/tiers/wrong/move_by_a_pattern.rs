// expect: E0382
let t = (ones([2]), 1);
let (a, n) = t;
t.0.len()
