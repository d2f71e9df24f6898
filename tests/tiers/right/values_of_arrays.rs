let x = array([1.5, 2.5, -3.5]);
x.to_vec::<f32>()
// %%
x.to_vec::<i32>()
// %%
let v: Vec<f64> = x.to_vec();
v
// %%
x.sum().item()
// %%
x.max().item_as::<f32>()
// %%
let n: i32 = x.min().item_as();
n
// %%
let mean = x.mean().item();
println!("{mean:.4}");
// %%
x.slice(0).item() as i32 + 1
// %%
let mut total = 0.0;
for value in x.to_vec::<f32>() {
    total += value;
}
total
// %%
for i in 0..x.len() {
    print!("{} ", x.at(i as i32).item());
}
println!();
// %%
if x.sum().item() > 0.0 { "positive" } else { "not positive" }
// %%
match x.argmax().item_as::<i32>() {
    0 => "first",
    1 => "second",
    _ => "later",
}
