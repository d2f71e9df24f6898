// expect: E0308
fn double(n: i32) -> i32 {
    n * 2;
}
