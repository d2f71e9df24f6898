// expect: E0507
fn first(t: &(Array, Array)) -> Array {
    t.0
}
