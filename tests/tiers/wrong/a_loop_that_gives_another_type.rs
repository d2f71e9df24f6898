// expect: E0308
let x = fori_loop(0, 3, |i, x: Array| (i, x), ones([3]));
