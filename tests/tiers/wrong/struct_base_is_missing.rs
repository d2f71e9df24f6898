// expect: E0797
struct Point { x: f64, y: f64 }
let p = Point { x: 1.0, .. };
