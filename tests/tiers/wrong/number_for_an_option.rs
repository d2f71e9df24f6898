// expect: E0308
fn half(n: i32) -> Option<i32> {
    n / 2
}
