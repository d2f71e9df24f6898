// expect: E0594
let mut total = zeros([2]);
let g = grad(move |[x]| {
    total = &total + x;
    (x * &total).sum()
});
