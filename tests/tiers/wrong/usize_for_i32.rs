// expect: E0308
fn f(n: i32) -> i32 {
    n
}
let v = vec![1];
f(v.len())
