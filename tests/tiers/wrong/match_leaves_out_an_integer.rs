// expect: E0004
let n = 3;
match n {
    0 => 1,
    1..=9 => 2,
}
