// expect: E0618
let n = 5;
n(1)
