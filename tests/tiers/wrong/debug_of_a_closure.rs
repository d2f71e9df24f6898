// expect: E0277
let f = |x: i32| x;
println!("{:?}", f);
