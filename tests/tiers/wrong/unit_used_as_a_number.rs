// expect: E0308
fn nothing() {}
let n: i32 = nothing();
