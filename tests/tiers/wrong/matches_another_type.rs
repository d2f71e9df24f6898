// expect: E0308
matches!(1, Some(2))
