// expect: E0515
fn longest() -> &'static str {
    let s = String::from("a");
    s.as_str()
}
