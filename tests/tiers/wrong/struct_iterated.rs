// expect: E0277
struct Point { x: f64, y: f64 }
for x in (Point { x: 1.0, y: 2.0 }) {}
