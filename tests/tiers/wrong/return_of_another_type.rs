// expect: E0308
fn half(n: i32) -> f64 {
    n / 2
}
