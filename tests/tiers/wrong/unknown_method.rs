// expect: E0599
let x = ones([2]);
x.tahn()
