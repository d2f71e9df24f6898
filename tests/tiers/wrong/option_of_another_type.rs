// expect: E0308
let mut o = Some(1);
o = Some("a");
