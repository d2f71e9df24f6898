// expect: E0594
fn clear(v: &[i32]) {
    v[0] = 0;
}
