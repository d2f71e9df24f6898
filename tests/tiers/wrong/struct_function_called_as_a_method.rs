// expect: E0599
struct Point { x: f64, y: f64 }
impl Point { fn origin() -> Point { Point { x: 0.0, y: 0.0 } } }
Point::origin().origin().x
