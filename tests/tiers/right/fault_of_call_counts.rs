// faults
let f = jit(|[x, y]| x + y);
println!("{}", f.call(vec![ones([1]), ones([1])]).item());
f.call(vec![ones([1])])
