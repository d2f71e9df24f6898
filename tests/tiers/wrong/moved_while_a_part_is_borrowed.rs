// expect: E0505
let t = (ones([1]), 1);
let r = &t.0;
drop(t);
println!("{}", r.len());
