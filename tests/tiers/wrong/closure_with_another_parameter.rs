// expect: E0631
fn apply(f: impl Fn(i32) -> i32) -> i32 {
    f(1)
}
apply(|x: f64| 1)
