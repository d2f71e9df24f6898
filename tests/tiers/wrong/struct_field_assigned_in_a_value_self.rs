// expect: E0594
struct Point { x: f64, y: f64 }
impl Point { fn f(self) { self.x = 1.0; } }
