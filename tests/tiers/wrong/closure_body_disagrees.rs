// expect: E0308
let f = |n: i32| {
    if n > 0 {
        return 1;
    }
    "negative"
};
