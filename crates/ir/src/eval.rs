//! What each [`ScalarOp`] means, one scalar at a time: in `f64` (floats) or wrapping `i64`
//! (integers), then rounded or wrapped to the element type. Constant folding and the interpreter use
//! it; compiled code is held to it.

use crate::dtype::{DType, Literal};
use crate::scalar::ScalarOp;

impl ScalarOp {
    /// `op(args)`, where `dtype` is that of the operands (of the two values for `Select`). Total: an
    /// op that a type has no use for goes through `f64`.
    pub fn eval(self, dtype: DType, args: &[Literal]) -> Literal {
        debug_assert_eq!(args.len(), self.arity());
        match self {
            ScalarOp::Select => args[if args[0].as_i64() != 0 { 1 } else { 2 }],
            ScalarOp::Threefry => {
                let [a, b, c] = [args[0].bits(), args[1].bits(), args[2].bits()];
                let [word, _] = threefry2x32([a as u32, b as u32], [0, c as u32]);
                Literal::from_bits(dtype, word as u64)
            }
            _ if self.result(dtype) == DType::Bool && dtype != DType::Bool => {
                Literal::from_i64(DType::Bool, self.holds(dtype, args) as i64)
            }
            _ if dtype.is_float() => self.eval_float(dtype, args),
            _ => self.eval_integer(dtype, args),
        }
    }

    /// Comparisons and `IsFinite`.
    fn holds(self, dtype: DType, args: &[Literal]) -> bool {
        use std::cmp::Ordering::*;
        if self == ScalarOp::IsFinite {
            return args[0].as_f64().is_finite();
        }
        let order = if dtype.is_float() {
            args[0].as_f64().partial_cmp(&args[1].as_f64())
        } else {
            Some(args[0].as_i64().cmp(&args[1].as_i64()))
        };
        match self {
            ScalarOp::Eq => order == Some(Equal),
            ScalarOp::Ne => order != Some(Equal),
            ScalarOp::Lt => order == Some(Less),
            ScalarOp::Le => matches!(order, Some(Less | Equal)),
            ScalarOp::Gt => order == Some(Greater),
            _ => matches!(order, Some(Greater | Equal)),
        }
    }

    fn eval_float(self, dtype: DType, args: &[Literal]) -> Literal {
        let x = args[0].as_f64();
        let y = args.get(1).map_or(0.0, |y| y.as_f64());
        Literal::from_f64(dtype, self.real(x, y))
    }

    fn real(self, x: f64, y: f64) -> f64 {
        match self {
            ScalarOp::Neg => -x,
            ScalarOp::Abs => x.abs(),
            ScalarOp::Sign if x == 0.0 || x.is_nan() => x,
            ScalarOp::Sign => x.signum(),
            ScalarOp::Floor => x.floor(),
            ScalarOp::Ceil => x.ceil(),
            ScalarOp::Round => x.round_ties_even(),
            ScalarOp::Sqrt => x.sqrt(),
            ScalarOp::Rsqrt => 1.0 / x.sqrt(),
            ScalarOp::Exp => x.exp(),
            ScalarOp::Expm1 => x.exp_m1(),
            ScalarOp::Log => x.ln(),
            ScalarOp::Log1p => x.ln_1p(),
            ScalarOp::Sin => x.sin(),
            ScalarOp::Cos => x.cos(),
            ScalarOp::Tan => x.tan(),
            ScalarOp::Tanh => x.tanh(),
            ScalarOp::Erf => erf(x),
            ScalarOp::Add => x + y,
            ScalarOp::Sub => x - y,
            ScalarOp::Mul => x * y,
            ScalarOp::Div => x / y,
            ScalarOp::Rem => x % y,
            ScalarOp::Pow => x.powf(y),
            ScalarOp::Atan2 => x.atan2(y),
            ScalarOp::Max if x.is_nan() || x > y => x,
            ScalarOp::Min if x.is_nan() || x < y => x,
            ScalarOp::Max | ScalarOp::Min => y,
            ScalarOp::Not => (x == 0.0) as i64 as f64,
            ScalarOp::And => (x != 0.0 && y != 0.0) as i64 as f64,
            ScalarOp::Or => (x != 0.0 || y != 0.0) as i64 as f64,
            ScalarOp::Xor => ((x != 0.0) != (y != 0.0)) as i64 as f64,
            ScalarOp::ShiftLeft => x * y.exp2(),
            ScalarOp::ShiftRight => x / y.exp2(),
            // Taken by `eval` before it comes here.
            ScalarOp::IsFinite
            | ScalarOp::Eq
            | ScalarOp::Ne
            | ScalarOp::Lt
            | ScalarOp::Le
            | ScalarOp::Gt
            | ScalarOp::Ge
            | ScalarOp::Select
            | ScalarOp::Threefry => f64::NAN,
        }
    }

    fn eval_integer(self, dtype: DType, args: &[Literal]) -> Literal {
        let width = 8 * dtype.size() as u64;
        let x = args[0].as_i64();
        let y = args.get(1).map_or(0, |y| y.as_i64());
        let shift = args.get(1).map_or(0, |y| y.bits());
        let value = match self {
            ScalarOp::Neg => x.wrapping_neg(),
            ScalarOp::Abs => x.wrapping_abs(),
            ScalarOp::Sign => x.signum(),
            ScalarOp::Floor | ScalarOp::Ceil | ScalarOp::Round => x,
            ScalarOp::Not if dtype == DType::Bool => (x == 0) as i64,
            ScalarOp::Not => !x,
            ScalarOp::Add => x.wrapping_add(y),
            ScalarOp::Sub => x.wrapping_sub(y),
            ScalarOp::Mul => x.wrapping_mul(y),
            ScalarOp::Div if y == 0 => -1,
            ScalarOp::Div => x.wrapping_div(y),
            ScalarOp::Rem if y == 0 => x,
            ScalarOp::Rem => x.wrapping_rem(y),
            ScalarOp::Pow => integer_power(x, y),
            ScalarOp::Max => x.max(y),
            ScalarOp::Min => x.min(y),
            ScalarOp::And => x & y,
            ScalarOp::Or => x | y,
            ScalarOp::Xor => x ^ y,
            ScalarOp::ShiftLeft | ScalarOp::ShiftRight if shift >= width => 0,
            ScalarOp::ShiftLeft => x << shift,
            ScalarOp::ShiftRight => (args[0].bits() >> shift) as i64,
            ScalarOp::IsFinite => 1,
            // Bool comparisons: the other types' were answered by `holds`.
            ScalarOp::Eq
            | ScalarOp::Ne
            | ScalarOp::Lt
            | ScalarOp::Le
            | ScalarOp::Gt
            | ScalarOp::Ge => self.holds(dtype, args) as i64,
            _ => return Literal::from_f64(dtype, self.real(x as f64, y as f64)),
        };
        Literal::from_i64(dtype, value)
    }
}

/// By squaring, wrapping; negative exponents give 0, or ±1 for the bases ±1.
fn integer_power(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (1, ..0) => 1,
        (-1, ..0) => 1 - 2 * (exponent & 1),
        (_, ..0) => 0,
        _ => {
            let (mut result, mut square, mut left) = (1i64, base, exponent);
            while left > 0 {
                if left & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                left >>= 1;
            }
            result
        }
    }
}

/// The Threefry-2x32 block function with 20 rounds (Salmon et al., "Parallel random numbers: as easy
/// as 1, 2, 3", SC 2011), the generator of JAX.
pub fn threefry2x32(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1bd1_1bda;
    let keys = [key[0], key[1], PARITY ^ key[0] ^ key[1]];
    let mut x = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for group in 0..5usize {
        for rotation in ROTATIONS[group % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(group + 1) % 3]);
        x[1] = x[1].wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    x
}

/// The error function, within a few units of the last place of `f64`: the Maclaurin series near
/// zero, one minus the continued fraction of the complement elsewhere (Abramowitz and Stegun 7.1.5
/// and 7.1.14).
pub fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude.is_nan() {
        x
    } else if magnitude < 1.5 {
        erf_series(x)
    } else if magnitude < 6.5 {
        (1.0 - erfc_fraction(magnitude)).copysign(x)
    } else {
        1f64.copysign(x)
    }
}

fn erf_series(x: f64) -> f64 {
    let (mut power, mut sum) = (x, x);
    for n in 1..60 {
        power *= -x * x / n as f64;
        sum += power / (2 * n + 1) as f64;
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn erfc_fraction(x: f64) -> f64 {
    let tail = (1..=120).rev().fold(x, |tail, n| x + n as f64 / 2.0 / tail);
    (-x * x).exp() / tail * std::f64::consts::FRAC_2_SQRT_PI / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(op: ScalarOp, dtype: DType, args: &[f64]) -> f64 {
        let args: Vec<Literal> = args.iter().map(|&x| Literal::from_f64(dtype, x)).collect();
        op.eval(dtype, &args).as_f64()
    }

    #[test]
    fn threefry_gives_the_known_answers() {
        assert_eq!(threefry2x32([0; 2], [0; 2]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry2x32([u32::MAX; 2], [u32::MAX; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(
            threefry2x32([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]),
            [0xc492_3a9c, 0x483d_f7a0]
        );
    }

    #[test]
    fn erf_agrees_with_tabled_values() {
        // Abramowitz and Stegun, table 7.1, continued with erfc(x) of table 7.3.
        let table = [
            (0.0, 0.0),
            (0.02, 0.022_564_574_691_844_943),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (1.5, 0.966_105_146_475_310_7),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
        ];
        for (x, want) in table {
            assert!((erf(x) - want).abs() <= 3e-16, "erf({x}) = {} ≠ {want}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert_eq!(erf(f64::INFINITY), 1.0);
        assert!(erf(f64::NAN).is_nan());
        assert_eq!(erf(1e-300), 1e-300 * std::f64::consts::FRAC_2_SQRT_PI);
    }

    #[test]
    fn the_two_halves_of_erf_meet() {
        let below = erf_series(1.5);
        let above = 1.0 - erfc_fraction(1.5);
        assert!((below - above).abs() < 4e-16, "{below} {above}");
    }

    #[test]
    fn integers_divide_as_xla_does() {
        assert_eq!(eval(ScalarOp::Div, DType::I32, &[7.0, 0.0]), -1.0);
        assert_eq!(eval(ScalarOp::Div, DType::U32, &[7.0, 0.0]), u32::MAX as f64);
        assert_eq!(eval(ScalarOp::Div, DType::I32, &[-7.0, 2.0]), -3.0);
        assert_eq!(eval(ScalarOp::Div, DType::I32, &[i32::MIN as f64, -1.0]), i32::MIN as f64);
        assert_eq!(eval(ScalarOp::Rem, DType::I32, &[-7.0, 4.0]), -3.0);
        assert_eq!(eval(ScalarOp::Rem, DType::I32, &[-7.0, 0.0]), -7.0);
        let minimum = Literal::from_i64(DType::I64, i64::MIN);
        let args = [minimum, Literal::from_i64(DType::I64, -1)];
        assert_eq!(ScalarOp::Div.eval(DType::I64, &args), minimum);
    }

    #[test]
    fn integer_powers_wrap_and_shifts_end_at_the_width() {
        assert_eq!(eval(ScalarOp::Pow, DType::I32, &[3.0, 4.0]), 81.0);
        assert_eq!(eval(ScalarOp::Pow, DType::I32, &[2.0, 31.0]), i32::MIN as f64);
        assert_eq!(eval(ScalarOp::Pow, DType::I32, &[-1.0, -3.0]), -1.0);
        assert_eq!(eval(ScalarOp::Pow, DType::I32, &[2.0, -3.0]), 0.0);
        assert_eq!(eval(ScalarOp::ShiftLeft, DType::U8, &[255.0, 4.0]), 240.0);
        assert_eq!(eval(ScalarOp::ShiftLeft, DType::I32, &[1.0, 32.0]), 0.0);
        assert_eq!(eval(ScalarOp::ShiftRight, DType::I32, &[-1.0, 31.0]), 1.0);
        assert_eq!(eval(ScalarOp::ShiftRight, DType::I32, &[-1.0, -1.0]), 0.0);
    }

    #[test]
    fn nan_wins_every_maximum_and_equals_nothing() {
        let nan = f64::NAN;
        for args in [[nan, 1.0], [1.0, nan]] {
            assert!(eval(ScalarOp::Max, DType::F32, &args).is_nan());
            assert!(eval(ScalarOp::Min, DType::F32, &args).is_nan());
            assert_eq!(eval(ScalarOp::Eq, DType::F32, &args), 0.0);
            assert_eq!(eval(ScalarOp::Ge, DType::F32, &args), 0.0);
            assert_eq!(eval(ScalarOp::Ne, DType::F32, &args), 1.0);
        }
        assert!(eval(ScalarOp::Sign, DType::F32, &[nan]).is_nan());
        assert!(eval(ScalarOp::Sign, DType::F32, &[-0.0]).is_sign_negative());
    }

    #[test]
    fn bools_compare_and_combine() {
        assert_eq!(eval(ScalarOp::Lt, DType::Bool, &[0.0, 1.0]), 1.0);
        assert_eq!(eval(ScalarOp::Eq, DType::Bool, &[1.0, 1.0]), 1.0);
        assert_eq!(eval(ScalarOp::Not, DType::Bool, &[1.0]), 0.0);
        assert_eq!(eval(ScalarOp::Xor, DType::Bool, &[1.0, 1.0]), 0.0);
    }

    #[test]
    fn every_op_is_total_on_every_type() {
        use ScalarOp::*;
        let ops = [
            Neg, Abs, Sign, Floor, Ceil, Round, Sqrt, Rsqrt, Exp, Expm1, Log, Log1p, Sin, Cos, Tan,
            Tanh, Erf, Not, IsFinite, Add, Sub, Mul, Div, Rem, Pow, Atan2, Max, Min, And, Or, Xor,
            ShiftLeft, ShiftRight, Eq, Ne, Lt, Le, Gt, Ge, Select, Threefry,
        ];
        let patterns = [0, 1, u64::MAX, 1 << 63, 0x7f80_0000, 0x8000_0000, 0x7fc0_0000, 1 << 31];
        for dtype in DType::ALL {
            for op in ops {
                for a in patterns {
                    for b in patterns {
                        let args = [a, b, a].map(|bits| Literal::from_bits(dtype, bits));
                        let result = op.eval(dtype, &args[..op.arity()]);
                        assert_eq!(result.dtype(), op.result(dtype), "{op:?} of {dtype}");
                    }
                }
            }
        }
    }
}
