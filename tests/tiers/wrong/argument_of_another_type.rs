// expect: E0308
fn double(x: i32) -> i32 {
    x * 2
}
double(2.5)
