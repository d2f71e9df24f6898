// expect: E0605
String::from("5") as i32
