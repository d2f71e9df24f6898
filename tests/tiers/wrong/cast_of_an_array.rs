// expect: E0605
let x = ones([1]);
x as f64
