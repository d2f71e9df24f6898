// expect: E0716
let s = String::from(" a ").trim();
println!("{s}");
