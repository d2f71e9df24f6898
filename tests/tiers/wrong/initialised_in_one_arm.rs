// expect: E0381
let x: i32;
match 3 {
    0 => x = 1,
    _ => {}
}
x
