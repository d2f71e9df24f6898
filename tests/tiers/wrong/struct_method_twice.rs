// expect: E0592
struct Point { x: f64, y: f64 }
impl Point { fn f(&self) {} }
impl Point { fn f(&self) {} }
