// expect: E0369
fn nothing() {}
nothing() + 1
