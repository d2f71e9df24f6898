// expect: E0508
let a = [ones([1]), zeros([1])];
let x = a[0];
