// expect: E0373
fn adder(k: i32) -> impl Fn(i32) -> i32 {
    |x| x + k
}
