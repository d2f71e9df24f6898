// expect: E0277
let mut n = 0;
let v = vec![|| n += 1; 2];
