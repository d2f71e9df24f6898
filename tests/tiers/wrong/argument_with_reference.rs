// expect: E0308
fn take(x: Array) -> usize {
    x.len()
}
let x = ones([2]);
take(&x)
