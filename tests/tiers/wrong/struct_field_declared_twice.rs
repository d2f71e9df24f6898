// expect: E0124
struct Point { x: f64, x: i32 }
