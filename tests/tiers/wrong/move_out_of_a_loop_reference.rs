// expect: E0507
let v = vec![ones([2])];
for x in &v {
    let y = *x;
}
