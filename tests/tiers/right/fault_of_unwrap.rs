// faults
let mut v = vec![1];
println!("{:?}", v.pop().unwrap());
v.pop().unwrap()
