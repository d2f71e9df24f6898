let mib = 1024 * 1024;
let x = ones([mib]);
let one = memory_stats().bytes_in_use;
fn now(one: u64) -> u64 {
    memory_stats().bytes_in_use / one
}
now(one)
// %%
let pair = (x.tanh().exp().sum().item() > 0.0, now(one));
pair
// %%
let held = (x.tanh(), now(one)).1;
held
// %%
let chain = { x.tanh().exp(); now(one) };
chain
// %%
match x.tanh().len() {
    n if n > 0 => now(one),
    _ => 0,
}
// %%
let n = if x.tanh().len() > 0 { now(one) } else { 0 };
n
// %%
let mut seen = 0;
while x.tanh().len() > 0 && seen == 0 {
    seen = now(one);
}
seen
// %%
for i in 0..x.exp().ndim() {
    println!("{}", now(one));
}
// %%
now(one)
