// expect: E0382
let x = ones([2]);
let v = vec![x];
let t = (x, 1);
