// expect: E0308
let f = jit_tree(|w: &Array, [x]| x * w);
let y = f(ones([2]), [&ones([2])]);
