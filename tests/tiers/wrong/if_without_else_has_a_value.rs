// expect: E0317
let n = 3;
let x: i32 = if n > 2 { 1 };
