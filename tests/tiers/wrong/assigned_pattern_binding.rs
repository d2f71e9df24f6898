// expect: E0384
let (a, b) = (1, 2);
a = b;
