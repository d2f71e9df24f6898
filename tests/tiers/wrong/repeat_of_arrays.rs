// expect: E0277
let a = [ones([1]); 3];
