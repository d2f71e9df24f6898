// faults
let x = 3;
assert!(x == 3);
assert_eq!(x * 2, 7, "twice {}", x);
