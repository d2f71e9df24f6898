// expect: E0061
struct Point { x: f64, y: f64 }
impl Point { fn norm(&self) -> f64 { self.x } }
Point::norm()
