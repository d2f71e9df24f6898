// expect: E0599
struct Point { x: f64, y: f64 }
Point::ORIGIN.x
