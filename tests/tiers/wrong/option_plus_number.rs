// expect: E0369
let o = Some(1);
o + 1
