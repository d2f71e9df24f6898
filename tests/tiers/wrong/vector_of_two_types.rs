// expect: E0308
let mut v = vec![1];
v.push("a");
