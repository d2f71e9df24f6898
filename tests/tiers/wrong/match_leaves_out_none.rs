// expect: E0004
match Some(1) {
    Some(n) => n,
}
