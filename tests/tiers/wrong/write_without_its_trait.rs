// expect: E0599
let mut s = String::new();
write!(s, "x").unwrap();
