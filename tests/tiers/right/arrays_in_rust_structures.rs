let params: Vec<Array> = (1..=3).map(|i| full([2], i)).collect();
let total = params.iter().fold(zeros([2]), |acc, p| acc + p);
total
// %%
let squares = params.iter().map(|p| p * p).collect::<Vec<Array>>();
squares[2].at(0).item()
// %%
let largest = params.iter().map(|p| p.max().item()).fold(0.0, f64::max);
largest
// %%
let mut best = &params[0];
for p in &params {
    if p.sum().item() > best.sum().item() {
        best = p;
    }
}
println!("{best}");
// %%
let n = params[0].shape()[0];
zeros([n, n + 1]).shape()
// %%
zeros(params[1].shape()).len()
// %%
let shape = params[0].shape();
let (rows, last) = (shape[0], shape[shape.len() - 1]);
ones(&shape).reshape([rows as i32, -1]).shape()
// %%
let layers = [(2, 3), (3, 1)];
let mut h = ones([1, 2]);
for (i, o) in layers {
    h = h.dot(&full([i, o], 0.5));
}
h
// %%
let mut history: Vec<(i32, f64)> = vec![];
for step in 0..3 {
    let loss = full([1], 1.0 / (step + 1) as f64).item();
    history.push((step, loss));
}
for (step, loss) in &history {
    println!("step {step}: {loss:.3}");
}
// %%
let maybe = Some(&params[1]);
if let Some(p) = maybe {
    println!("{}", p.len());
}
// %%
let f = |xs: &[Array]| xs.iter().map(|x| x.len()).sum::<usize>();
f(&params) + f(&params[1..])
// %%
let [a, b, c] = [&params[0], &params[1], &params[2]];
(a + b - c).sum().item()
// %%
let x = linspace(1.0, 4.0, 4);
println!("{} {}", x.take(array([-1, -4, 3, 7, -9]), 0), x.at(-1));
println!("{}", zeros([4]).scatter_add(array([-1, -2]), ones([2]), 0));
println!("{}", grad(|[x]| x.take(array([-1, -1, 0]), 0).sum())([&x]));
println!("{}", vmap(|[x, i]| x.take(i, 0))([&ones([2, 3]).cumsum(1), &array([[-1, 0], [1, -3]])]));
