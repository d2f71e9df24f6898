// expect: E0004
let n = 3;
match n {
    x if x > 0 => 1,
    x if x <= 0 => 2,
}
