// expect: E0004
let v = vec![1, 2];
match v.as_slice() {
    [] => 0,
    [a] => *a,
}
