seed(1);
let x = randn([16, 4]);
let target = x.dot(&array([[1.0], [-2.0], [0.5], [3.0]]));
let mut w = zeros([4, 1]);
let lr = 0.1;
let mut losses = vec![];
for step in 0..50 {
    let error = x.dot(&w) - &target;
    let grad = x.t().dot(&error) * (2.0 / 16.0);
    w = w - grad * lr;
    if step % 10 == 0 {
        losses.push((&error * &error).mean().item());
    }
}
losses.len()
// %%
let falling = losses.windows(2).all(|pair| pair[1] < pair[0]);
falling
// %%
w.ravel().to_vec::<f32>().iter().map(|v| format!("{v:.1}")).collect::<Vec<_>>().join(" ")
