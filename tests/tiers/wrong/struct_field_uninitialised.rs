// expect: E0381
struct Point { x: f64, y: f64 }
let mut p: Point;
p.x = 1.0;
