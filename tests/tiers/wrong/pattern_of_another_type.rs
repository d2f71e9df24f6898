// expect: E0308
match 5 {
    "five" => 1,
    _ => 2,
}
