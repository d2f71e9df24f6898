// expect: E0605
let k = 1;
let f = (|x: i32| x + k) as i32;
