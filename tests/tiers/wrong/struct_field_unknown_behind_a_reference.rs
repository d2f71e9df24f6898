// expect: E0609
struct Point { x: f64, y: f64 }
fn f(p: &Point) -> f64 { p.w }
