fn area(w: f64, h: f64) -> f64 {
    struct Rect { w: f64, h: f64 }
    impl Rect { fn area(&self) -> f64 { self.w * self.h } }
    Rect { w, h }.area()
}
println!("{}", area(2.0, 3.0));
// %%
let n = {
    #[derive(Debug)]
    struct Local(i32);
    let l = Local(3);
    println!("{:?}", l);
    l.0 + 1
};
println!("{n}");
// %%
struct State { x: i32 }
fn make(x: i32) -> State { State { x } }
fn read(s: &State) -> i32 { s.x }
fn write(s: &mut State, x: i32) { s.x = x; }
fn pick(a: State, b: State, first: bool) -> State { if first { a } else { b } }
fn largest<'a>(a: &'a State, b: &'a State) -> &'a State { if a.x > b.x { a } else { b } }
let mut s = make(1);
let five = read(&s) + 4;
write(&mut s, five);
println!("{}", s.x);
println!("{}", pick(make(1), make(2), false).x);
println!("{}", largest(&make(3), &s).x);
// %%
let states: Vec<State> = (0..4).map(make).collect();
let sum: i32 = states.iter().map(read).sum();
println!("{sum}");
let best = states.iter().max_by_key(|s| (s.x - 2).abs()).unwrap();
println!("{}", best.x);
let by_value = states.into_iter().filter(|s| s.x % 2 == 1).map(|s| s.x).collect::<Vec<i32>>();
println!("{by_value:?}");
// %%
const ORIGIN: Place = Place { x: 0, y: 0 };
#[derive(Clone, Copy, Debug)]
struct Place { x: i32, y: i32 }
impl Place {
    const UP: Place = Place { x: 0, y: 1 };
    fn plus(self, other: Place) -> Place { Place { x: self.x + other.x, y: self.y + other.y } }
}
println!("{:?}", ORIGIN.plus(Place::UP).plus(Place::UP));
let p: &Place = &Place { x: 1, y: 1 };
println!("{}", p.x);
// %%
let mut acc = make(0);
let mut add = |n: i32| { acc.x += n; acc.x };
add(2);
println!("{}", add(3));
println!("{}", acc.x);
let made = loop {
    acc.x += 1;
    if acc.x > 8 { break State { x: acc.x * 2 }; }
};
println!("{}", made.x);
struct Op { name: String, run: fn(f64) -> f64, boxed: Box<dyn Fn(f64) -> f64 + Send + Sync> }
fn square(x: f64) -> f64 { x * x }
let k = 3.0;
let op = Op { name: "sq".into(), run: square, boxed: Box::new(move |x| x + k) };
println!("{} {} {}", op.name, (op.run)(3.0), (op.boxed)(1.0));
