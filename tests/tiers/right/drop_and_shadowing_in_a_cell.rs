let mib = 1024 * 1024;
let x = ones([mib]);
let one = memory_stats().bytes_in_use;
let n = {
    let y = &x + 1.0;
    let y = &y + 1.0;
    let y = &y + 1.0;
    memory_stats().bytes_in_use / one
};
n
// %%
fn shadow(x: Array, one: u64) -> u64 {
    let x = &x + 1.0;
    let x = tanh(x);
    memory_stats().bytes_in_use / one
}
shadow(x.clone(), one)
// %%
memory_stats().bytes_in_use / one
// %%
let moved = x;
let closure = move || moved.len();
let before = memory_stats().bytes_in_use / one;
closure();
drop(closure);
(before, memory_stats().bytes_in_use / one)
