// expect: E0435
let n = 3;
let a = [0; n];
