// expect: E0308
let a: [i32; 3] = [1, 2];
