// expect: E0368
fn bump(n: &mut i32) {
    n += 1;
}
