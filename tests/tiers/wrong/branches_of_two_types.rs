// expect: E0308
let n = 3;
let x = if n > 2 { 1 } else { "two" };
