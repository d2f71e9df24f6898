// expect: none
let x = 2;
1 < x < 3
