// expect: E0308
let k = 2;
let fs = [|x: i32| x + 1, move |x: i32| x * k];
fs[1](3)
