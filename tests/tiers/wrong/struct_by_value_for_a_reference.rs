// expect: E0308
struct Point { x: f64, y: f64 }
fn f(p: &Point) {}
f(Point { x: 1.0, y: 2.0 });
