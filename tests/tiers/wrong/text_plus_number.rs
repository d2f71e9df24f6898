// expect: E0308
let s = String::from("a");
s + 1
