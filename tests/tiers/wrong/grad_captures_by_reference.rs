// expect: E0373
let w = ones([2]);
let g = grad(|[x]| (x * &w).sum());
