// expect: E0368
struct N(i32);
let mut n = N(1);
n += N(2);
