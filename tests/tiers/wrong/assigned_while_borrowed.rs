// expect: E0506
let mut n = 1;
let r = &n;
n = 2;
println!("{r}");
