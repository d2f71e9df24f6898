// expect: E0505
let w = ones([2]);
let r = &w;
let f = jit(move |[x]| x * &w);
println!("{}", r.len());
