// expect: E0425, none
println!("{value}", other = 1);
