// expect: E0600
struct Point { x: f64, y: f64 }
-Point { x: 1.0, y: 2.0 }
