// expect: E0606
"5" as i32
