// expect: E0606
let n = 5;
&n as f64
