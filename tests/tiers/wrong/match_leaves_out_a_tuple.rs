// expect: E0004
match (1, true) {
    (0, _) => 1,
    (_, true) => 2,
}
