assert!(1 + 1 == 2);
assert!(true, "with a message {}", 1);
assert_eq!(2 * 3, 6);
assert_ne!(1, 2, "different");
debug_assert!(true);
println!("all hold");
