// expect: E0599
use std::fmt::Write;
let mut n = 1u8;
write!(n, "x").unwrap();
