// expect: E0308
fn f() {
    return 5;
}
