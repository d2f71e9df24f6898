// expect: E0615
let x = ones([2]);
x.sum
