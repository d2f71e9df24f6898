// expect: E0282
let f = |x| x;
