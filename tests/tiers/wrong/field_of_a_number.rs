// expect: E0610
let n = 5;
n.x
