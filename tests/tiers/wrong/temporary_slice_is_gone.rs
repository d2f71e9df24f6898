// expect: E0716
let v = vec![1, 2].as_slice();
println!("{}", v.len());
