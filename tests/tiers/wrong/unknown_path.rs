// expect: E0433
let x = Tensor::zeros(3);
