(5i32.pow(3), 10i32.signum(), (-3i32).signum(), 7i32.clamp(0, 5), 13u32.count_ones(), 1u8.leading_zeros())
// %%
(9i32.abs_diff(-4), 100u32.ilog2(), 8u8.trailing_zeros(), 17i32.div_euclid(-5), 1u8.rotate_left(3), 6u32.is_power_of_two())
// %%
(2.0f64.powf(0.5), 8.0f64.cbrt(), 3.0f64.hypot(4.0), 100.0f64.log10(), 8.0f64.log2(), 2.0f64.log(4.0))
// %%
(2.5f64.fract(), -2.5f64.signum(), 5.5f64.clamp(0.0, 1.0), 2.0f64.mul_add(3.0, 4.0), 180.0f64.to_radians())
// %%
(0.5f64.tanh(), 1.0f64.sinh(), 0.5f64.asin(), 1.0f64.tan(), 1.0f64.exp_m1(), 1.0f64.ln_1p())
// %%
(7.0f64.rem_euclid(-3.0), f64::INFINITY.is_finite(), 1.0f64.is_nan(), 2.0f64.recip(), 2.0f64.exp2(), 1.5f64.total_cmp(&2.5))
// %%
(1.5f64.copysign(-1.0), 7.0f64 as f32 / 3.0, 1e-3f32.sqrt())
// %%
let circle = std::f64::consts::PI * 2.0f64.powi(2);
(circle, std::f64::consts::E)
// %%
(i64::from(7i32), f64::from(3))
// %%
(3.7f64 as u8 as char, 65u8 as char, (b'a' + 2) as char, 'z' as i32 - 'a' as i32)
// %%
(1.0f64.max(2.0).min(1.5), 3.min(4).max(1), std::cmp::max(3, 9), 5.cmp(&3), 1.0f64.partial_cmp(&2.0))
