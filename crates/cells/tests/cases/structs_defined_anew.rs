#[derive(Debug, Clone)]
struct Point { x: f64, y: f64 }
#[derive(Debug)]
struct Line { from: Point, to: Point }
struct Other { n: i32 }
impl Point { fn norm(&self) -> f64 { self.x + self.y } }
fn length(line: &Line) -> f64 { line.to.norm() - line.from.norm() }
fn origin() -> Point { Point { x: 0.0, y: 0.0 } }
fn number(n: i32) -> i32 { let p = Point { x: 1.0, y: 1.0 }; p.norm() as i32 + n }
const UNIT: Point = Point { x: 1.0, y: 1.0 };
let p = Point { x: 1.0, y: 2.0 };
let line = Line { from: origin(), to: p.clone() };
let other = Other { n: 3 };
let (n, all) = (1, vec![p.clone()]);
length(&line)
// %%
#[derive(Debug, Clone)]
struct Point { x: f64, y: f64 }
(p.norm(), line)
// %%
p
// %%
struct Point { x: f64, y: f64, z: f64 }
let n = other.n + number(1);
n
// %%
p
// %%
length(&1)
// %%
Line { from: 1, to: 2 }
// %%
let p = Point { x: 1.0, y: 2.0, z: 3.0 };
p.z
// %%
p.norm()
// %%
impl Point { fn norm(&self) -> f64 { self.z } }
p.norm()
// %%
impl Point { fn norm(&self) -> f64 { self.z * 2.0 } }
p.norm()
// %%
let q = p.x;
struct Point { x: i32 }
q
// %%
struct Point { x: i32 }
Point { x: 4 }.x
// %%
let name = String::from("n");
struct Held { name: String }
let h = Held { name };
let r = &h.name;
r.len()
// %%
struct Held { name: i32 }
r.len()
