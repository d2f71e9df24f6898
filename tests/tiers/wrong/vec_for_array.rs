// expect: E0308
fn sum(a: [i32; 2]) -> i32 {
    a[0] + a[1]
}
sum(vec![1, 2])
