// expect: E0004
match "a" {
    "a" => 1,
    "b" => 2,
}
