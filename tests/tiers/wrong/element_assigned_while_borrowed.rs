// expect: E0506
let mut a = [1, 2];
let r = &a[0];
a[0] = 5;
println!("{r}");
