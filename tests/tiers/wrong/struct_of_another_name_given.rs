// expect: E0308
struct Point { x: f64, y: f64 }
struct Other { x: f64, y: f64 }
fn f(p: Point) {}
f(Other { x: 1.0, y: 2.0 });
