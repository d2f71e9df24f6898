// expect: E0428
struct Point { x: f64 }
struct Point { y: f64 }
