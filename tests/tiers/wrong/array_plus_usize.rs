// expect: E0277
let x = ones([2]);
let n = x.len();
&x / n
