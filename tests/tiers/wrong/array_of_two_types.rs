// expect: E0308
let a = [1, 2.5];
