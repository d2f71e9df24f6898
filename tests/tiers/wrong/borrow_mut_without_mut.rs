// expect: E0596
let n = 1;
let r = &mut n;
