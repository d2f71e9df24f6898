// expect: E0505
let v = vec![ones([1])];
let first = &v[0];
let w = v;
println!("{}", first.len());
