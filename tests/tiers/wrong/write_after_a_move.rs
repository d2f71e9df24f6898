// expect: E0382
use std::fmt::Write;
let mut s = String::new();
drop(s);
write!(s, "x").unwrap();
