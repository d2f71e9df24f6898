// expect: E0382
let s = String::new();
dbg!(s);
s.len()
