// expect: E0061
let x = ones([2]);
x.dot()
