// expect: E0604
300i32 as char
