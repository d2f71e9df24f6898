// expect: E0282
let f = jit_tree(|p, [x]| x.dot(&p.w));
