// expect: E0507
fn take(x: &Array) -> Array {
    *x
}
