// expect: E0506
struct Point { x: f64, y: f64 }
let mut p = Point { x: 1.0, y: 2.0 };
let r = &p.x;
p = Point { x: 0.0, y: 0.0 };
println!("{r}");
