// expect: E0308
match (1, 2) {
    (a, b, c) => a,
}
