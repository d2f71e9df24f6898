// expect: E0308
let p = (ones([2]), ones([2]));
let q = sgd(&p, &ones([2]), 0.1);
