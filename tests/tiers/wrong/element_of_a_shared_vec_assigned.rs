// expect: E0596
fn clear(v: &Vec<i32>) {
    v[0] = 0;
}
