// expect: E0308
struct Point { x: f64, y: f64 }
struct Other { x: f64, y: f64 }
let o = Other { x: 1.0, y: 1.0 };
let p = Point { x: 1.0, ..o };
