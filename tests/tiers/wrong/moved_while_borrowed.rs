// expect: E0505
let x = ones([2]);
let r = &x;
drop(x);
println!("{}", r.len());
