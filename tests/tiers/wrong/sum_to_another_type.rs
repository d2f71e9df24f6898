// expect: E0277
let s: i32 = [1.5, 2.5].iter().sum();
