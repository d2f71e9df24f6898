// expect: E0308
struct Point { x: f64, y: f64 }
impl Point { fn add(&self, by: f64) -> f64 { self.x + by } }
let p = Point { x: 1.0, y: 2.0 };
p.add(1)
