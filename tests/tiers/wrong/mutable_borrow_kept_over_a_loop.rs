// expect: E0499
let mut v = vec![1];
let mut refs = Vec::new();
for _ in 0..2 {
    refs.push(&mut v);
}
