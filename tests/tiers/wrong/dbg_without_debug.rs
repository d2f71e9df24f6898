// expect: E0277
let f = || 1;
dbg!(f);
