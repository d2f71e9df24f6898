// expect: E0373
fn adder(k: i32) -> Box<dyn Fn(i32) -> i32> {
    Box::new(|x| x + k)
}
