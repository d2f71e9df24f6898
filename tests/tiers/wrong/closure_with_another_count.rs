// expect: E0593
fn apply(f: impl Fn(i32) -> i32) -> i32 {
    f(1)
}
apply(|a, b| a + b)
