// expect: E0596
let x = ones([2]);
x += 1.0;
