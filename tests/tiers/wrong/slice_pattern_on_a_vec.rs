// expect: E0529
let v = vec![1, 2];
match v {
    [a, b] => a + b,
    _ => 0,
}
