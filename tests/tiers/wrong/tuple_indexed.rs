// expect: E0608
let t = (1, 2);
t[0]
