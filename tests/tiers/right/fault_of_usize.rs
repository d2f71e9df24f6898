// faults
let n: usize = 2;
let m = n - 2;
println!("{m}");
m - 1
