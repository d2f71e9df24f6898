// faults
println!("{}", ones([1]).item());
ones([2]).item()
