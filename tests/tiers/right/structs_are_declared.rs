struct Point {
    x: f64,
    y: f64,
}
let p = Point { x: 1.0, y: 2.0 };
println!("{} {}", p.x, p.y);
// %%
struct Pair(i32, String);
struct Unit;
let pair = Pair(3, "three".to_string());
let unit = Unit;
println!("{} {}", pair.0, pair.1);
// %%
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Small {
    a: u8,
    b: bool,
}
let s = Small { a: 1, b: true };
let t = s;
println!("{:?} {:?} {}", s, t, s == t);
println!("{:?}", Small::default());
// %%
let x = 5.0;
let y = -1.0;
let q = Point { y, x };
println!("{} {}", q.x, q.y);
let r = Point { x: 9.0, ..q };
println!("{} {}", r.x, r.y);
// %%
#[derive(Debug)]
pub struct Empty {}
#[derive(Debug)]
pub struct AlsoEmpty();
println!("{:?} {:?}", Empty {}, AlsoEmpty());
(Empty {}, 1)
// %%
#[derive(Debug)]
struct Late { of: Later }
#[derive(Debug)]
struct Later(usize, [i32; SIZE]);
const SIZE: usize = 2;
Late { of: Later(7, [1, 2]) }
