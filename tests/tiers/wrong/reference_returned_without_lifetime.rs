// expect: E0106
fn pick(a: &Array, b: &Array) -> &Array {
    a
}
