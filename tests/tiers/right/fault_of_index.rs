// faults
let v = vec![1, 2, 3];
let i = 7;
println!("{}", v[1]);
v[i]
