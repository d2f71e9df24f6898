// expect: E0594
let a = [1, 2, 3];
a[0] = 5;
