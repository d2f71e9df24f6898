let mib = 1024 * 1024;
let start = memory_stats().bytes_in_use;
let a = zeros([mib]);
let one = memory_stats().bytes_in_use - start;
one / mib as u64
// %%
let b = &a + 1.0;
let two = memory_stats().bytes_in_use - start;
drop(a);
let less = memory_stats().bytes_in_use - start;
(two / one, less / one)
// %%
let c = b.clone();
let shared = memory_stats().bytes_in_use - start;
let d = c.copy();
let copied = memory_stats().bytes_in_use - start;
(shared / one, copied / one)
// %%
drop(b);
let held = memory_stats().bytes_in_use - start;
drop(c);
let freed = memory_stats().bytes_in_use - start;
(held / one, freed / one)
// %%
{
    let inner = &d * 2.0;
    println!("{}", (memory_stats().bytes_in_use - start) / one);
}
println!("{}", (memory_stats().bytes_in_use - start) / one);
// %%
let e = d;
(memory_stats().bytes_in_use - start) / one
// %%
let _ = &e + 1.0;
(memory_stats().bytes_in_use - start) / one
// %%
let _kept = &e + 1.0;
(memory_stats().bytes_in_use - start) / one
// %%
e.tanh();
(memory_stats().bytes_in_use - start) / one
