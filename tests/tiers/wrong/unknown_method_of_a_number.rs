// expect: E0599
let n = 5;
n.tanh_all()
