fn layer([h, w]: [&Array; 2]) -> Array {
    checkpoint_name(h.dot(w), "product").tanh()
}
let h = full([2, 3], 0.25);
let w = full([3, 3], 0.5);
let plain = grad(|a: [&Array; 2]| layer(a).sum());
let whole = plain([&h, &w]);
whole.shape()
// %%
let kept = grad(checkpoint(|a: [&Array; 2]| layer(a).sum()));
let dots = grad(checkpoint_with(dots_saveable(), |a: [&Array; 2]| layer(a).sum()));
let named = grad(checkpoint_with(save_only_these_names(["product"]), |a: [&Array; 2]| layer(a).sum()));
let other = grad(checkpoint_with(save_any_names_but_these(["product"]), |a: [&Array; 2]| layer(a).sum()));
for given in [kept([&h, &w]), dots([&h, &w]), named([&h, &w]), other([&h, &w])] {
    println!("{}", allclose(&given, &whole));
}
// %%
let two = remat(|[x]| (x * 2.0, x + 1.0));
let (a, b) = two([&ones([2])]);
println!("{a} {b}");
// %%
let net = grad(|[x, a, b]| {
    let (a, b) = (a.clone(), b.clone());
    let mut layers = Vec::new();
    for w in [a, b] {
        layers.push(checkpoint(move |[h]| h.dot(&w).tanh()));
    }
    checkpoint_segments(2, layers)([x]).sum()
});
net([&h, &w, &w]).shape()
// %%
residuals(|[x, w]| x.dot(w).tanh().sum(), [&h, &w]).contains("argument 1")
// %%
fn first([h]: [&Array; 1]) -> Array { h.tanh() }
fn second([h]: [&Array; 1]) -> Array { h.sin() }
let both = checkpoint_segments(2, vec![first, second]);
let slope = grad(move |a: [&Array; 1]| both(a).sum())([&zeros([2])]);
println!("{slope}");
