// expect: E0415
struct Point { x: f64, y: f64 }
impl Point { fn f(&self, a: i32, a: i32) {} }
