// expect: E0604
1.5 as char
