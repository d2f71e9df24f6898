// expect: E0609
let t = (1, 2);
t.2
