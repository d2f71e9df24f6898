// expect: E0308
let v = vec![ones([2]), 1.0];
