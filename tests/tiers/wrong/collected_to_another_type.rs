// expect: E0277
let v: Vec<i32> = [1.5, 2.5].iter().map(|x| x * 2.0).collect();
