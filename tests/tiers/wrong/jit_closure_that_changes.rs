// expect: E0594
let mut n = 0;
let f = jit(move |[x]| {
    n += 1;
    x * n
});
