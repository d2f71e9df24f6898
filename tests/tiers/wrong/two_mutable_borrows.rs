// expect: E0499
let mut n = 1;
let a = &mut n;
let b = &mut n;
*a += *b;
