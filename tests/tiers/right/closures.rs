let add = |a, b| a + b;
add(1, 2)
// %%
let k = 10;
let by_ref = |x| x * k;
by_ref(4) + k
// %%
let mut count = 0;
let mut tick = || {
    count += 1;
    count
};
tick();
tick();
let third = tick();
(third, count)
// %%
let mut total = 0.0;
let mut add_to = |x: f64| total += x;
add_to(1.5);
add_to(2.5);
total
// %%
let name = String::from("moved");
let owned = move || name.len();
owned() + owned()
// %%
let mut n = 5;
let mut own = move || {
    n += 1;
    n
};
(own(), own(), n)
// %%
let square = |x: f64| -> f64 { x * x };
let twice = |f: fn(f64) -> f64, x: f64| f(f(x));
square(3.0)
// %%
fn apply(f: impl Fn(i32) -> i32, x: i32) -> i32 {
    f(f(x))
}
apply(|x| x * k, 3)
// %%
let (p, q) = (2, 3);
let swap = |(a, b): (i32, i32)| (b, a);
let sum = |[a, b, c]: [i32; 3]| a + b + c;
(swap((p, q)), sum([1, 2, 3]))
// %%
let nothing = || {};
nothing()
// %%
let nested = |x: i32| {
    let inner = |y: i32| x * 10 + y;
    inner(1) + inner(2)
};
nested(3)
// %%
fn run(mut f: impl FnMut(i32)) {
    for i in 0..3 {
        f(i);
    }
}
let mut log = Vec::new();
run(|i| log.push(i * i));
log
// %%
let early = |n: i32| {
    if n < 0 {
        return "negative";
    }
    "positive"
};
(early(-1), early(1))
// %%
let s = String::from("gone");
let consume = move || s;
consume()
// %%
fn double(x: i32) -> i32 { x * 2 }
fn square(x: i32) -> i32 { x * x }
let fs = [double, square, double];
fs[0](3) + fs[1](3)
// %%
let fs = vec![|x: i32| x + 1, |x: i32| x * 10];
fs.iter().map(|f| f(4)).sum::<i32>()
// %%
let f = if fs.len() > 5 { double } else { square };
f(7)
// %%
let f = match fs.len() { 2 => square, _ => |x: i32| x - 1 };
f(9)
