// expect: E0277
fn f(o: Option<i32>) -> i32 {
    o? + 1
}
