// expect: E0308
let w = 5i32;
println!("{:w$}", 1);
