// faults
let f = jit_tree(|p: &(Array, Array), [x]| x.dot(&p.0) + &p.1);
f(&(ones([3, 2]), zeros([3])), [&ones([4, 3])])
