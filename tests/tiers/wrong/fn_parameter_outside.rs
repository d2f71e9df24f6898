// expect: E0425
fn f(width: i32) -> i32 {
    width
}
width
