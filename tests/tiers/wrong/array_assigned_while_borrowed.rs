// expect: E0506
let mut x = ones([2]);
let r = &x;
x = &x + 1.0;
println!("{}", r.len());
