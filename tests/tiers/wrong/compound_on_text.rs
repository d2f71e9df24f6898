// expect: E0368
let mut s = "a";
s += "b";
