// expect: E0515
fn tail<'a>() -> &'a [i32] {
    let v = vec![1, 2];
    &v[1..]
}
