// expect: E0503
struct Point { x: f64, y: f64 }
let mut p = Point { x: 1.0, y: 2.0 };
let mut f = || p.x += 1.0;
let n = p.x + p.y;
f();
