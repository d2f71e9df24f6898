// expect: E0308
fn shout(s: &str) -> usize {
    s.len()
}
shout(String::from("a"))
