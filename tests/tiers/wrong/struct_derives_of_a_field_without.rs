// expect: E0277
struct Point { x: f64, y: f64 }
#[derive(Clone)]
struct Line { from: Point }
