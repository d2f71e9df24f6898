// expect: E0382
let x = ones([2]);
let f = move || x.len();
let g = move || x.len();
