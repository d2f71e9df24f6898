// expect: E0425
fn f(x: Tensor) -> i32 {
    1
}
