// expect: E0596
let v = vec![1, 2];
for x in v.iter_mut() {
    *x += 1;
}
