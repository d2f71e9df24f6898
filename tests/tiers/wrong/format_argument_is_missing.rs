// expect: none
println!("{} {}", 1);
