// expect: E0499
fn swap(a: &mut i32, b: &mut i32) {
    *a = *b;
}
let mut n = 1;
swap(&mut n, &mut n);
