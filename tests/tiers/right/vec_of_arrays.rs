let mut params = vec![ones([2, 2]), zeros([2])];
params.push(full([1], 5.0));
params.len()
// %%
params[0].sum().item()
// %%
for (i, p) in params.iter().enumerate() {
    println!("{i} {:?} {}", p.shape(), p.sum().item());
}
// %%
for p in &params {
    print!("{} ", p.len());
}
println!();
// %%
let grads: Vec<Array> = params.iter().map(|p| p * 0.0 + 1.0).collect();
for i in 0..params.len() {
    params[i] = &params[i] - &grads[i] * 0.1;
}
&params[1]
// %%
for (p, g) in params.iter_mut().zip(&grads) {
    *p = &*p - g * 0.1;
}
params[2].item()
// %%
let total: f64 = params.iter().map(|p| p.sum().item()).sum();
println!("{total:.3}");
// %%
params.swap(0, 1);
params.insert(0, arange(3));
let gone = params.remove(2);
(params.len(), gone.shape())
// %%
params.retain(|p| p.len() > 2);
params.len()
// %%
let shapes: Vec<Vec<usize>> = params.iter().map(|p| p.shape()).collect();
shapes
// %%
let joined = concatenate(&params, 0);
joined
// %%
let last = params.last().unwrap().shape();
last
// %%
let taken = params.pop().unwrap();
(taken.shape(), params.is_empty())
// %%
let mut nested = vec![(ones([1]), zeros([1])), (zeros([2]), ones([2]))];
for (w, b) in &nested {
    print!("{} ", (w + b).sum().item());
}
nested[0].0 = full([1], 9.0);
println!("{}", nested[0].0.item());
