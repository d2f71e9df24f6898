// expect: E0369
let x = ones([2]);
let y = ones([2]);
x == y
