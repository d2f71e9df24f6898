// expect: E0308
fn f(n: i32) -> i32 {
    if n > 2 {
        return "large";
    }
    n
}
