// expect: E0506
let mut t = (1, 2);
let r = &t.0;
t.0 = 5;
println!("{r}");
