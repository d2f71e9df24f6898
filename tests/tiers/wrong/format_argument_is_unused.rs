// expect: none
println!("{}", 1, 2);
