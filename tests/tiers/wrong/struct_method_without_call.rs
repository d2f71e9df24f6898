// expect: E0615
struct Point { x: f64, y: f64 }
impl Point { fn norm(&self) -> f64 { self.x } }
let p = Point { x: 1.0, y: 2.0 };
let n = p.norm;
