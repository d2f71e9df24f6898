let mib = 1024 * 1024;
let mut x = ones([mib]);
let one = memory_stats().bytes_in_use;
fn now(one: u64) -> u64 {
    memory_stats().bytes_in_use / one
}
reset_peak();
x = x.exp();
println!("{} {}", now(one), memory_stats().peak_bytes_in_use / one);
// %%
reset_peak();
x = x + 1.0;
println!("{} {}", now(one), memory_stats().peak_bytes_in_use / one);
// %%
reset_peak();
x += 1.0;
println!("{} {}", now(one), memory_stats().peak_bytes_in_use / one);
// %%
let mut t = (x, ones([mib]));
t.1 = zeros([1]);
println!("{}", now(one));
t.0 = &t.0 + 1.0;
println!("{}", now(one));
// %%
fn replace(slot: &mut Array) {
    *slot = &*slot * 2.0;
}
replace(&mut t.0);
println!("{}", now(one));
// %%
let mut v = vec![t.0];
v[0] = ones([mib]);
v.push(ones([mib]));
v.push(ones([mib]));
println!("{}", now(one));
v.swap(0, 1);
v.truncate(2);
println!("{}", now(one));
v.pop();
println!("{}", now(one));
// %%
let mut slot = v.pop();
println!("{} {}", now(one), slot.is_some());
slot = None;
println!("{}", now(one));
// %%
let mut a = ones([mib]);
let mut b = zeros([mib]);
std::mem::swap(&mut a, &mut b);
let old = std::mem::replace(&mut a, full([mib], 5.0));
println!("{} {} {} {}", now(one), old.max().item(), a.max().item(), b.max().item());
// %%
drop((a, b));
println!("{}", now(one));
// %%
let old = 1;
println!("{old}");
