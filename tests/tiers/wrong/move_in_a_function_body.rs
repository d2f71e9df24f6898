// expect: E0382
fn twice(x: Array) -> Array {
    let y = tanh(x);
    x + y
}
