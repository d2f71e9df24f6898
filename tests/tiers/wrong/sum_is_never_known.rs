// expect: E0283
let s = [1, 2].iter().sum();
