// expect: E0282
let n = None;
