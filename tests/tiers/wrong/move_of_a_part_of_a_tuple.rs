// expect: E0382
let t = (ones([2]), zeros([2]));
let a = t.0;
let u = t;
