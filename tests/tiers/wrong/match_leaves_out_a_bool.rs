// expect: E0004
match (true, false) {
    (true, _) => 1,
    (false, true) => 2,
}
