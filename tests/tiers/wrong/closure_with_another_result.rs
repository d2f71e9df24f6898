// expect: E0308
fn apply(f: impl Fn(i32) -> i32) -> i32 {
    f(1)
}
apply(|x| x as f64)
