// expect: E0283
let v = [1, 2].iter().map(|x| x * 2).collect();
