// expect: E0382
struct Point { x: f64, y: f64 }
impl Point { fn sum(self) -> f64 { self.x + self.y } }
let p = Point { x: 1.0, y: 2.0 };
p.sum() + p.sum()
