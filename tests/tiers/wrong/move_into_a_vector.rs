// expect: E0382
let x = ones([2]);
let mut v = Vec::new();
v.push(x);
x.len()
