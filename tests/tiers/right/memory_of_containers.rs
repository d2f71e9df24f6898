let mib = 1024 * 1024;
let one = {
    let x = ones([mib]);
    memory_stats().bytes_in_use
};
fn now(one: u64) -> u64 {
    memory_stats().bytes_in_use / one
}
let mut v: Vec<Array> = Vec::new();
for i in 0..4 {
    v.push(full([mib], i));
}
(now(one), v.len())
// %%
let last = v.pop();
println!("{}", now(one));
drop(last);
println!("{}", now(one));
// %%
let first = v.remove(0);
println!("{} {}", now(one), v.len());
// %%
v[0] = &v[0] + 1.0;
println!("{} {}", now(one), v[0].max().item());
// %%
v.clear();
println!("{}", now(one));
// %%
let t = (first, ones([mib]));
println!("{}", now(one));
let (a, b) = t;
drop(a);
println!("{}", now(one));
// %%
let mut slot = b;
slot = zeros([mib]);
println!("{}", now(one));
slot = &slot + 1.0;
println!("{}", now(one));
// %%
let many = [ones([mib]), ones([mib]), ones([mib])];
println!("{}", now(one));
let [_, y, _] = many;
println!("{}", now(one));
// %%
drop(y);
println!("{}", now(one));
