// expect: E0308
fn total(v: &[f64]) -> f64 {
    v[0]
}
total(&[1, 2])
