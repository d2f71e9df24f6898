// expect: E0423
struct Point { x: f64, y: f64 }
let p = Point;
