// expect: E0382
let o = Some(String::new());
let b = matches!(o, Some(s) if s.len() > 1);
o.is_some()
