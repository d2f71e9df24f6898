// expect: E0716
struct Point { x: f64, y: f64 }
fn make() -> Vec<Point> { vec![] }
let r = make().iter();
r.count()
