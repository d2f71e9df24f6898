// expect: E0596
let mut log = vec![1];
let f = jit(move |[x]| {
    log.push(2);
    x * 2.0
});
