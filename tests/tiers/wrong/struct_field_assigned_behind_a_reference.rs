// expect: E0594
struct Point { x: f64, y: f64 }
fn f(p: &Point) { p.x = 1.0; }
