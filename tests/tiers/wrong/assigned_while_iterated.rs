// expect: E0506
let mut v = vec![1, 2];
for x in &v {
    v = vec![*x];
}
