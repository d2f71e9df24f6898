// expect: E0384
let f = |x: i32| {
    x += 1;
    x
};
