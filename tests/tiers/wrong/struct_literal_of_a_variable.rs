// expect: E0574
let p = 1;
let q = p { x: 1.0 };
