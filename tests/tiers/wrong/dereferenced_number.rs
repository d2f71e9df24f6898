// expect: E0614
let n = 5;
*n
