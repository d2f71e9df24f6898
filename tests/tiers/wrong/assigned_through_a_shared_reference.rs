// expect: E0594
fn set(n: &i32) {
    *n = 5;
}
