// expect: E0599
println!("x").len()
