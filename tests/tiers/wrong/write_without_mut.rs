// expect: E0596
use std::fmt::Write;
let s = String::new();
write!(s, "x").unwrap();
