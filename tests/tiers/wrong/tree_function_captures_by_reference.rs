// expect: E0373
let k = ones([2]);
let g = grad_tree(|w: &Array, [x]| (x * w * &k).sum());
