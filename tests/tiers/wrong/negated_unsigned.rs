// expect: E0600
let n = 5usize;
-n
