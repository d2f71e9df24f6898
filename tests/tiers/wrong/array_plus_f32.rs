// expect: E0277
let x = ones([2]);
x + 1.5f32
