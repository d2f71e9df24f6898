// faults
let x = ones([2, 3]);
let ok = &x + 1.0;
println!("{}", ok.sum().item());
let bad = &x + &ones([4]);
