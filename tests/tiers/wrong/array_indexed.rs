// expect: E0608
let x = ones([2]);
x[0]
