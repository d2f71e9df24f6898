// expect: E0308
matches!(1, n if n)
