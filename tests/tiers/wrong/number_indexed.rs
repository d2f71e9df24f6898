// expect: E0608
let n = 5;
n[0]
