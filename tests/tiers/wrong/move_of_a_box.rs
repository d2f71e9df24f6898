// expect: E0382
fn apply(f: impl Fn(i32) -> i32) -> i32 {
    f(1)
}
let s = String::from("a");
let f = move |x: i32| x + s.len() as i32;
apply(f) + apply(f)
