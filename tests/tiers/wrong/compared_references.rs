// expect: E0277
let x = 1;
&x == 1
