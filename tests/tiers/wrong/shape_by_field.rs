// expect: E0615
let x = ones([1]);
let n = x.shape[0];
