// expect: E0606
'a' as f64
