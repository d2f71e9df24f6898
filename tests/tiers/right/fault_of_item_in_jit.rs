// faults
let f = jit(|[x]| x * x.sum().item());
f([&ones([2])])
