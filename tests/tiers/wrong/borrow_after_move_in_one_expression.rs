// expect: E0382
let x = ones([2]);
let y = x + &x;
