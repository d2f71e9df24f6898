// expect: E0061
fn f(x: i32) -> i32 {
    x
}
f(1, 2)
