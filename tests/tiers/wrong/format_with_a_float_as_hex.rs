// expect: E0277
println!("{:x}", 1.5);
