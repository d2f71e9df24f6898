// faults
let xs = ones([3]);
let (c, _) = scan(|c, x| (c + x, ()), zeros_as(I32, ()), xs);
println!("{c}");
