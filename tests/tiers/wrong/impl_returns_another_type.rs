// expect: E0308
struct Point { x: f64, y: f64 }
impl Point { fn new() -> Self { 1.0 } }
