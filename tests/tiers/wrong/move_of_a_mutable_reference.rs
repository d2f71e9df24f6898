// expect: E0382
let mut v = vec![1];
let r = &mut v;
let s = r;
s.push(2);
r.push(3);
