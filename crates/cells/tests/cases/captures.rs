let w = 3; let f = jit(|[x]| x * w);
// %%
let f = |s: &String| s.len();
let name = String::from("abc");
let show = || println!("{name}");
show(); show();
f(&name)
// %%
let mut log = Vec::new();
let mut add = |x: i32| log.push(x);
add(1); add(2);
log
// %%
let once = || name;
once().len() + once().len()
// %%
let t = (String::from("l"), String::from("r"));
let left = || t.0.len();
drop(t.1);
left()
// %%
fn apply(f: impl Fn(i32) -> i32, n: i32) -> i32 { f(f(n)) }
fn adder(k: i32) -> impl Fn(i32) -> i32 { move |x| x + k }
apply(adder(5), 1)
// %%
fn bad(k: i32) -> impl Fn(i32) -> i32 { |x| x + k }
