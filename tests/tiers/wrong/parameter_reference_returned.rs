// expect: E0515
fn keep<'a>(x: Array) -> &'a Array {
    &x
}
