// expect: E0605
struct N(i32);
N(1) as i32
