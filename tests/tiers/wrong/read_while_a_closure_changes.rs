// expect: E0502
let mut v = vec![1];
let mut add = || v.push(2);
println!("{}", v.len());
add();
