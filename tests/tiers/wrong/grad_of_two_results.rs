// expect: E0308
let g = grad(|[x]| (x.sum(), x.max()));
