// expect: E0277
println!("{}", ());
