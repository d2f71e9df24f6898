// expect: E0308
let n = 5;
let a: u8 = n;
let b: u16 = n;
