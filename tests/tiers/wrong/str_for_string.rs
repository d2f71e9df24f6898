// expect: E0308
fn take(s: String) -> usize {
    s.len()
}
take("a")
