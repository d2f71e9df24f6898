fn relu_layer(x: &Array, w: &Array, b: &Array) -> Array {
    (x.dot(w) + b).maximum(0.0)
}
fn model(params: &[(Array, Array)], x: &Array) -> Array {
    let mut h = x.clone();
    for (w, b) in params {
        h = relu_layer(&h, w, b);
    }
    h
}
let params = vec![(full([3, 4], 0.1), zeros([4])), (full([4, 2], 0.2), ones([2]))];
model(&params, &ones([1, 3]))
// %%
fn count(params: &Vec<(Array, Array)>) -> usize {
    let mut n = 0;
    for (w, b) in params {
        n += w.len() + b.len();
    }
    n
}
count(&params)
// %%
fn norm_or(x: &Array, fallback: f64) -> f64 {
    let n = x.norm().item();
    if n > 0.0 { n } else { fallback }
}
(norm_or(&ones([4]), 9.0), norm_or(&zeros([4]), 9.0))
// %%
fn scaled(x: Array, by: impl Fn(&Array) -> Array) -> Array {
    by(&by(&x))
}
scaled(ones([2]), |x| x * 3.0)
// %%
fn powers(x: &Array, n: i32) -> Vec<Array> {
    let mut out = vec![x.clone()];
    for _ in 1..n {
        let next = out.last().unwrap() * x;
        out.push(next);
    }
    out
}
powers(&full([1], 2.0), 5).iter().map(|p| p.item()).collect::<Vec<f64>>()
