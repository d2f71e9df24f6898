let mut sum = 0.0;
for x in [0.1f32, 0.2, 0.3] {
    sum += x;
}
sum
// %%
let half = 0.5;
let exact: f32 = half;
exact / 3.0
// %%
let third = 1.0 / 3.0;
third
// %%
let xs = vec![1.0, 2.0];
let y: f32 = xs[0] / 3.0;
y
// %%
fn scale(x: f32) -> f32 {
    x * 0.1
}
let unit = 1.0;
scale(unit)
