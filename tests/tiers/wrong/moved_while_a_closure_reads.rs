// expect: E0505
let x = ones([2]);
let f = || x.len();
drop(x);
f();
