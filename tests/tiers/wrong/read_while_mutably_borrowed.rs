// expect: E0502
let mut v = vec![1];
let r = &mut v;
println!("{}", v.len());
r.push(1);
