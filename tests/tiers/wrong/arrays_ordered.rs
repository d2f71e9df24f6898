// expect: E0369
let x = ones([2]);
x < 1.0
