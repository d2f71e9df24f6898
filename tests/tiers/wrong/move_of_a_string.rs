// expect: E0382
let s = String::from("a");
let t = s + "b";
s.len()
