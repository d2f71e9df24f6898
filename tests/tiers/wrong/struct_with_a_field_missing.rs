// expect: E0063
struct Point { x: f64, y: f64 }
let p = Point { x: 1.0 };
