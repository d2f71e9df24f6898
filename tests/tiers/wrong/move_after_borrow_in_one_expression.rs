// expect: E0505
let x = ones([2]);
let y = &x + x;
