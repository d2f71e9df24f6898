// expect: E0382
let o = Some(ones([2]));
let Some(x) = o else { panic!() };
o.is_some()
