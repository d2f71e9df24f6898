// expect: E0308
assert!(1);
