// expect: E0411
fn f(x: Self) {}
