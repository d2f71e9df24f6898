// expect: E0277
struct Plain { w: Array }
let g = grad_tree(|p: &Plain, [x]| (x * &p.w).sum());
