// expect: E0369
assert_eq!(ones([2]), ones([2]));
