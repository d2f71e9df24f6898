// expect: E0415
fn f(a: i32, a: i32) -> i32 {
    a
}
