// expect: E0689
let x = 3;
x.pow(2)
