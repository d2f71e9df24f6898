// expect: E0605
vec![1, 2] as f64
