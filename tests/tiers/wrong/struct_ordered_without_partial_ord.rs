// expect: E0369
#[derive(PartialEq)]
struct N(i32);
N(1) < N(2)
