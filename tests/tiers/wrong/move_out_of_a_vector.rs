// expect: E0507
let v = vec![ones([2])];
let x = v[0];
