// expect: E0277, E0308
assert_eq!(1, 1.0);
