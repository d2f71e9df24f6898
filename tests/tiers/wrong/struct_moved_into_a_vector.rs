// expect: E0382
struct Point { x: f64, y: f64 }
let p = Point { x: 1.0, y: 2.0 };
let v = vec![p];
p.x
