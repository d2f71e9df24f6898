// expect: E0608
let x = ones([4]);
x[0..2].len()
