// expect: E0382
let t = (ones([2]), zeros([2]));
drop(t.0);
t.0.len()
