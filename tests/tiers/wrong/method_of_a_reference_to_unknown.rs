// expect: E0599
let v = vec![ones([1])];
v.tanh()
