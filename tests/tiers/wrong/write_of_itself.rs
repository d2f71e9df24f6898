// expect: E0502
use std::fmt::Write;
let mut s = String::new();
write!(s, "{}", s).unwrap();
