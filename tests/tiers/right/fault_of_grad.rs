// faults
let g = grad(|[x]| x * 2.0);
g([&ones([3])])
