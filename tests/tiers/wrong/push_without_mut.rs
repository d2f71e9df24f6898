// expect: E0596
let v = vec![1];
v.push(2);
