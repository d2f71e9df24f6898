// expect: E0308
let mut s = String::new();
s.push("ab");
