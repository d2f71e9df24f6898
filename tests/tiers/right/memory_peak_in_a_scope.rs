let mib = 1024 * 1024;
let x = ones([mib]);
let one = memory_stats().bytes_in_use;
let y = scope("layer", || tanh(exp(x.sin())));
(memory_stats().bytes_in_use / one, y.len() == mib as usize)
// %%
reset_peak();
let z = scope("methods", || x.sin().exp().tanh());
memory_stats().peak_bytes_in_use / one
// %%
let n = scope("number", || 1 + 1);
n
// %%
scope("outer", || {
    let t = x.tanh();
    scope("inner", || println!("{}", memory_stats().bytes_in_use / one));
});
// %%
block_until_ready(&y);
y.block_until_ready();
live_arrays().len()
// %%
memory_stats().num_allocs > 0
