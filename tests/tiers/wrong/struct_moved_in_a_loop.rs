// expect: E0382
struct Point { x: f64, y: f64 }
fn eat(p: Point) {}
let p = Point { x: 1.0, y: 2.0 };
for _ in 0..2 { eat(p); }
