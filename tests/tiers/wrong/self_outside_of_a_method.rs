// expect: E0424
struct Point { x: f64, y: f64 }
impl Point { fn f() -> f64 { self.x } }
