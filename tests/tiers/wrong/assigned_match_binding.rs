// expect: E0384
match 5 {
    n => n += 1,
}
