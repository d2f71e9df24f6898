// expect: E0596
let a = 1;
let mut b = 2;
std::mem::swap(&mut a, &mut b);
