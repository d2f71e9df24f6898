// expect: E0425
let value = 1;
println!("{valu}");
