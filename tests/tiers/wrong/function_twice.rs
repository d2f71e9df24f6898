// expect: E0428
fn f() {}
fn f() {}
