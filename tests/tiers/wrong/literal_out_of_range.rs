// expect: overflowing_literals
let x: u8 = 256;
