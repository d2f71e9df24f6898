// expect: E0434
fn outer(k: i32) -> i32 {
    fn inner() -> i32 {
        k
    }
    inner()
}
