struct Point { x: f64 }
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
matches!(1, 2)
