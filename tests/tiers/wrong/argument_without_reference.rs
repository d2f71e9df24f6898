// expect: E0308
fn len(x: &Array) -> usize {
    x.len()
}
let x = ones([2]);
len(x)
