// expect: E0277
let v = vec![1, 2];
println!("{v}");
