// expect: E0499
let mut v = vec![1, 2];
std::mem::swap(&mut v[0], &mut v[1]);
