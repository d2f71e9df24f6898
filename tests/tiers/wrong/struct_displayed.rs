// expect: E0277
#[derive(Debug)]
struct N(i32);
println!("{}", N(1));
