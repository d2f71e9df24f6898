let pair = (ones([2]), zeros([3]));
pair.0.sum().item() + pair.1.sum().item()
// %%
let (a, b) = &pair;
a.len() + b.len()
// %%
let (a, b) = pair;
drop(a);
b
// %%
fn stats(x: &Array) -> (Array, f64) {
    (x.mean(), x.max().item())
}
let (m, top) = stats(&b);
(m.item(), top)
// %%
let [p, q] = [ones([1]), zeros([1])];
(p - q).item()
// %%
let mut state = (ones([2]), 0);
for _ in 0..3 {
    state.0 = &state.0 * 2.0;
    state.1 += 1;
}
println!("{} {}", state.0, state.1);
// %%
let named = ("w", full([1], 4.0), [1, 2]);
named.1.item() as i32 + named.2[1]
