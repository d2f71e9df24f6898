// expect: E0594
struct Point { x: f64, y: f64 }
fn apply(f: impl Fn()) { f(); }
let mut p = Point { x: 1.0, y: 2.0 };
apply(|| p.x = 2.0);
