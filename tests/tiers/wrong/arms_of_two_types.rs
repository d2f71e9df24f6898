// expect: E0308
let n = 3;
let x = match n {
    0 => 1,
    _ => 2.5,
};
