(300i32 as u8, -1i32 as u8, 3.99 as i32, -3.99 as i32, 255u8 as i8)
// %%
(1e10 as i32, -1e10 as i32, f64::NAN as i32, f64::INFINITY as u8, -5.0 as u32)
// %%
('a' as u8, 97u8 as char, 'é' as u32, true as i32, false as u8)
// %%
(1i32 as f64 / 3 as f64, 16777217i32 as f32, u64::MAX as f32, i64::MAX as f64)
// %%
(-1i64 as usize as u8, i32::MIN as i64, 3_000_000_000u32 as i32, 1usize as i32)
// %%
let n = 7usize;
let mean = 10 as f64 / n as f64;
mean as f32
// %%
-1i8 as u32 as f32
// %%
let x = 2.7;
x as i32 as f64 as i32 + 1
