// expect: E0502
let mut v = vec![1, 2, 3];
let s = &v[1..];
v[0] = s[0];
println!("{}", s.len());
