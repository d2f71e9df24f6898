// expect: E0004
match Some(Some(1)) {
    Some(Some(_)) => 1,
    None => 2,
}
