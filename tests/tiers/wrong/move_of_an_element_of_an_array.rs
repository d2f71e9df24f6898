// expect: E0382
let a = [ones([1]), zeros([1])];
let [x, _] = a;
a.len()
