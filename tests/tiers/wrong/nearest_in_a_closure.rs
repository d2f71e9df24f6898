// expect: E0425
let f = |value: f64| valeu * 2.0;
