(250u8.wrapping_add(10), 250u8.saturating_add(10), 5u8.saturating_sub(10), i32::MAX.wrapping_add(1))
// %%
(250u8.checked_add(10), 250u8.checked_add(5), 5i32.checked_div(0), 7i32.checked_rem(2))
// %%
match 200u8.checked_mul(2) {
    Some(value) => println!("fits: {value}"),
    None => println!("too large"),
}
// %%
(i32::MAX, i32::MIN, u8::MAX, i64::MAX, usize::MIN, u32::MAX)
// %%
(f64::MAX, f64::MIN_POSITIVE, f64::EPSILON, f32::MAX)
