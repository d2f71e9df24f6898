// faults
let v = [1, 2, 3];
let (a, b) = (2, 5);
println!("{:?}", &v[a..]);
&v[a..b]
