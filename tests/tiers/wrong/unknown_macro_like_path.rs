// expect: E0433
let n = nums::max(1, 2);
