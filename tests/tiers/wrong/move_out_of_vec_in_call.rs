// expect: E0507
let v = vec![ones([1])];
drop(v[0]);
