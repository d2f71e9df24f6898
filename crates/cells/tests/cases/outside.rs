enum Point { A }
// %%
use std::collections::HashMap;
// %%
unsafe { 1 }
// %%
async { 1 }
// %%
fn id<T>(x: T) -> T { x }
// %%
let x = 1u128;
// %%
include_str!("a")
