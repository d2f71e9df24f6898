// expect: E0057
let f = |x: i32| x + 1;
f(1, 2)
