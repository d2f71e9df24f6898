// expect: E0425
let fact = |n: u32| if n == 0 { 1 } else { n * fact(n - 1) };
