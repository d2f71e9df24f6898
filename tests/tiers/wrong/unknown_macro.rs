// expect: none
printn!("x");
