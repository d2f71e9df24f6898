let v = vec![1.5, 2.5, 3.5];
let mut n = 0;
for _ in 0..2 {
    n += v.len();
}
n
// %%
let k = 3;
let wide: i64 = k;
let shifted = 1 << 30 >> 28;
(wide, k)
// %%
let mut total = 0;
let parts: [u8; 3] = [1, 2, 3];
for part in parts {
    total += part;
}
total
// %%
let big = 3_000_000_000u32;
let same = 3_000_000_000;
big == same
// %%
let index = 1;
let list = [10, 20, 30];
list[index]
// %%
let size = list.len() * index;
size
// %%
fn eight(x: i64) -> i64 {
    x * 8
}
let late = 5;
let out = eight(late);
out
// %%
let counts = vec![0; 3];
let first: u64 = counts[0];
counts
