// expect: E0600
let x: u8 = -1;
