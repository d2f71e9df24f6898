// expect: E0382
fn take(x: Array) -> usize {
    x.len()
}
let x = ones([2]);
take(x) + take(x)
