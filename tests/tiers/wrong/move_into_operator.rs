// expect: E0382
let x = ones([2]);
let y = x + 1.0;
let z = &x * 2.0;
