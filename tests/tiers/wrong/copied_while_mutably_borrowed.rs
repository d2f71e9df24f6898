// expect: E0503
let mut n = 1;
let r = &mut n;
let m = n + 1;
*r = m;
