// expect: E0502
let mut v = vec![1, 2];
for x in &v {
    v.push(*x);
}
