// expect: E0515
fn make() -> &'static Array {
    let x = ones([2]);
    &x
}
