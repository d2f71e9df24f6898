// expect: E0425
let x: Arry = ones([2]);
