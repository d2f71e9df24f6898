// expect: E0502
let mut v = vec![String::from("a")];
let first = v.first();
v.clear();
println!("{first:?}");
