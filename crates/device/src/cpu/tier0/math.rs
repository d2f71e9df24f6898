//! Elementary functions on one lane, written so that loops over them vectorise.
//!
//! Coefficients are minimax fits of our own (Remez exchange, 50 digits). Errors against the exact value, over every
//! thousandth `f32` and the special values (tests below): `exp`, `log`, `sin`, `cos` at most 1 ulp, `tanh` and `expm1`
//! at most 2, `log1p`, `tan`, `erf`, `pow` at most 1. The full range is kept: denormals, infinities, NaN, and arguments
//! of `sin`, `cos` and `tan` of any size (the caller sends lanes beyond [`TURNS_LIMIT`] to [`sin_far`] and its like).
//! Where `f32` does not carry enough digits for the reduction, the work is done in `f64`. `f64` functions are those of
//! the standard library, but for [`vramlab_ir::eval::erf`], which it lacks.

/// `a·b + c`, with one rounding where the instruction set has it.
#[inline(always)]
pub(crate) fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn fma64<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn poly<const FMA: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = fma::<FMA>(sum, x, coefficients[i]);
    }
    sum
}

#[inline(always)]
fn poly64<const FMA: bool, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = fma64::<FMA>(sum, x, coefficients[i]);
    }
    sum
}

/// Adding 1.5 · 2^23 rounds to an integer, half to even, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;
const ROUND64: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two parts; the first has 16 bits, so its products with exponents are exact.
const LN2_HIGH: f32 = f32::from_bits(0x3f31_7200);
const LN2_LOW: f32 = 1.428_606_8e-6;

/// 2^k for −126 ≤ k ≤ 127.
#[inline(always)]
fn power_of_two(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) << 23) as u32)
}

/// x = k ln 2 + r with |r| ≤ ln 2 / 2, as (k, r).
#[inline(always)]
fn reduce_exp<const FMA: bool>(x: f32) -> (i32, f32) {
    let shifted = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = fma::<FMA>(k, -LN2_LOW, fma::<FMA>(k, -LN2_HIGH, x));
    (shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32, r)
}

/// e^r − 1 for |r| ≤ ln 2 / 2.
#[inline(always)]
fn expm1_reduced<const FMA: bool>(r: f32) -> f32 {
    #[allow(clippy::excessive_precision)]
    let p = poly::<FMA, 6>(
        r,
        [0.5, 0.166_666_67, 0.041_666_355, 0.008_333_273, 0.001_394_100_8, 0.000_199_141_46],
    );
    fma::<FMA>(r * r, p, r)
}

/// Keeps NaN, unlike `f32::clamp` on swapped operands.
#[inline(always)]
fn between(x: f32, low: f32, high: f32) -> f32 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    let (k, r) = reduce_exp::<FMA>(between(x, -104.0, 89.0));
    let e = expm1_reduced::<FMA>(r) + 1.0;
    // In two steps, so that the first is exact and the second rounds once into denormals or infinity.
    let half = k >> 1;
    e * power_of_two(half) * power_of_two(k.wrapping_sub(half))
}

/// The same for |x| below 87, where 2^k is a normal number.
#[inline(always)]
pub(crate) fn usual_exp<const FMA: bool>(x: f32) -> f32 {
    let (k, r) = reduce_exp::<FMA>(x);
    (expm1_reduced::<FMA>(r) + 1.0) * power_of_two(k)
}

#[inline(always)]
pub(crate) fn expm1<const FMA: bool>(x: f32) -> f32 {
    let (k, r) = reduce_exp::<FMA>(between(x, -20.0, 89.0));
    // Half of 2^k, since 2^128 is none.
    let half = power_of_two(k.wrapping_sub(1));
    let e = 2.0 * fma::<FMA>(half, expm1_reduced::<FMA>(r), half - 0.5);
    if x.abs() < 1e-7 { x } else { e }
}

#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs();
    let (k, r) = reduce_exp::<FMA>(2.0 * if a > 10.0 { 10.0 } else { a });
    let scale = power_of_two(k);
    let t = fma::<FMA>(scale, expm1_reduced::<FMA>(r), scale - 1.0);
    // The quotient loses more than 2 ulp near zero.
    let square = x * x;
    let p = poly::<FMA, 5>(
        square,
        [-0.333_333_2, 0.133_326_02, -0.053_853_86, 0.021_077_763, -0.006_282_479],
    );
    let small = fma::<FMA>(square * a, p, a);
    (if a < 0.55 { small } else { t / (t + 2.0) }).copysign(x)
}

#[inline(always)]
pub(crate) fn log<const FMA: bool>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let bits = (if tiny { x * 8_388_608.0 } else { x }).to_bits();
    let e = (bits.wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits()) as i32) >> 23;
    let f = f32::from_bits(bits.wrapping_sub((e << 23) as u32)) - 1.0;
    let e = e as f32 - if tiny { 23.0 } else { 0.0 };
    let p = poly::<FMA, 9>(
        f,
        [
            0.333_333_1,
            -0.249_999_87,
            0.200_022_27,
            -0.166_692_51,
            0.142_186_64,
            -0.123_843_59,
            0.118_729_46,
            -0.117_897_324,
            0.069_153_37,
        ],
    );
    let square = f * f;
    let low = fma::<FMA>(e, LN2_LOW, fma::<FMA>(square * f, p, -0.5 * square));
    let value = fma::<FMA>(e, LN2_HIGH, f + low);
    let value = if x < f32::INFINITY { value } else { x };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x < 0.0 { f32::NAN } else { value }
}

/// log of a positive normal `f64`, to about 1e-15.
#[inline(always)]
fn log64<const FMA: bool>(x: f64) -> f64 {
    const ROOT: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const ONE: u64 = 1f64.to_bits();
    // Exponents as bits of 2^52 + E: there is no vector conversion from i64 before AVX-512.
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    let adjusted = x.to_bits().wrapping_add(ONE - ROOT);
    let e = f64::from_bits(SHIFT.to_bits() | (adjusted >> 52)) - (SHIFT + 1023.0);
    let m = f64::from_bits((adjusted & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = poly64::<FMA, 6>(
        z,
        [
            0.666_666_666_665_867,
            0.400_000_000_525_463_1,
            0.285_714_170_821_069_37,
            0.222_233_752_846_565_74,
            0.181_235_202_175_917_8,
            0.168_213_562_995_632_8,
        ],
    );
    fma64::<FMA>(e, std::f64::consts::LN_2, fma64::<FMA>(s * z, p, 2.0 * s))
}

/// e^x for |x| below about 700, to about 1e-13.
#[inline(always)]
fn exp64<const FMA: bool>(x: f64) -> f64 {
    let shifted = fma64::<FMA>(x, std::f64::consts::LOG2_E, ROUND64);
    let k = shifted - ROUND64;
    let r = fma64::<FMA>(k, -std::f64::consts::LN_2, x);
    let e = poly64::<FMA, 12>(
        r,
        [
            1.0,
            1.0,
            1.0 / 2.0,
            1.0 / 6.0,
            1.0 / 24.0,
            1.0 / 120.0,
            1.0 / 720.0,
            1.0 / 5040.0,
            1.0 / 40_320.0,
            1.0 / 362_880.0,
            1.0 / 3_628_800.0,
            1.0 / 39_916_800.0,
        ],
    );
    e * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

#[inline(always)]
pub(crate) fn log1p<const FMA: bool>(x: f32) -> f32 {
    // From 2^-29 on the sum is exact in f64; below 2^-25 the answer is x.
    let value = log64::<FMA>(1.0 + x as f64) as f32;
    let value = if x.abs() < 1e-8 { x } else { value };
    let value = if x < f32::INFINITY { value } else { x };
    let value = if x == -1.0 { f32::NEG_INFINITY } else { value };
    if x < -1.0 { f32::NAN } else { value }
}

/// Largest |x| whose multiple of π/2 is exact in `f64` here.
pub(crate) const TURNS_LIMIT: f32 = 4.0e6;

/// x = k·π/2 + r with |r| ≤ π/4, as (k's low bits, r), for |x| up to [`TURNS_LIMIT`].
#[inline(always)]
fn reduce_turns<const FMA: bool>(x: f64) -> (u64, f64) {
    /// π/2 to 31 bits, so that multiples up to 2^22 are exact, and the rest.
    const HIGH: f64 = 1.570_796_326_734_125_6;
    const LOW: f64 = 6.077_100_506_506_192e-11;
    let shifted = fma64::<FMA>(x, std::f64::consts::FRAC_2_PI, ROUND64);
    let k = shifted - ROUND64;
    (shifted.to_bits(), fma64::<FMA>(k, -LOW, fma64::<FMA>(k, -HIGH, x)))
}

/// (sin r, cos r) for |r| ≤ π/4.
#[inline(always)]
fn sin_cos_reduced<const FMA: bool>(r: f64) -> (f64, f64) {
    let square = r * r;
    let s = poly64::<FMA, 4>(
        square,
        [
            -0.166_666_666_415_265_95,
            0.008_333_329_374_100_541,
            -0.000_198_393_309_915_583_43,
            2.718_274_429_007_864e-6,
        ],
    );
    let c = poly64::<FMA, 4>(
        square,
        [
            0.041_666_666_622_653_51,
            -0.001_388_888_373_809_435_2,
            2.479_951_590_482_599_8e-5,
            -2.720_909_409_802_17e-7,
        ],
    );
    let sin = fma64::<FMA>(r * square, s, r);
    let cos = fma64::<FMA>(square * square, c, fma64::<FMA>(square, -0.5, 1.0));
    (sin, cos)
}

#[inline(always)]
fn signed(value: f64, negative: bool) -> f64 {
    if negative { -value } else { value }
}

#[inline(always)]
pub(crate) fn sin<const FMA: bool>(x: f32) -> f32 {
    let (k, r) = reduce_turns::<FMA>(x as f64);
    let (s, c) = sin_cos_reduced::<FMA>(r);
    let value = signed(if k & 1 == 0 { s } else { c }, k & 2 != 0) as f32;
    if x == 0.0 { x } else { value }
}

#[inline(always)]
pub(crate) fn cos<const FMA: bool>(x: f32) -> f32 {
    let (k, r) = reduce_turns::<FMA>(x as f64);
    let (s, c) = sin_cos_reduced::<FMA>(r);
    signed(if k & 1 == 0 { c } else { s }, k.wrapping_add(1) & 2 != 0) as f32
}

#[inline(always)]
pub(crate) fn tan<const FMA: bool>(x: f32) -> f32 {
    let (k, r) = reduce_turns::<FMA>(x as f64);
    let (s, c) = sin_cos_reduced::<FMA>(r);
    let odd = k & 1 != 0;
    let value = (if odd { -c } else { s } / if odd { s } else { c }) as f32;
    if x == 0.0 { x } else { value }
}

/// For arguments of any size.
pub(crate) fn sin_far(x: f32) -> f32 {
    (x as f64).sin() as f32
}

/// For arguments of any size.
pub(crate) fn cos_far(x: f32) -> f32 {
    (x as f64).cos() as f32
}

/// For arguments of any size.
pub(crate) fn tan_far(x: f32) -> f32 {
    (x as f64).tan() as f32
}

#[inline(always)]
pub(crate) fn erf<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs() as f64;
    let a = if a > 4.0 { 4.0 } else { a };
    let small = a * poly64::<FMA, 8>(
        a * a,
        [
            1.128_379_167_063_161,
            -0.376_126_384_837_641,
            0.112_837_827_465_287_62,
            -0.026_865_445_785_351_518,
            0.005_221_074_784_589_41,
            -0.000_848_471_018_279_823_3,
            0.000_112_705_358_665_017_86,
            -9.680_113_067_426_607e-6,
        ],
    );
    let log_rest = poly64::<FMA, 10>(
        a,
        [
            0.000_125_338_932_485_652_5,
            -1.129_204_107_727_196_8,
            -0.634_195_505_936_003_5,
            -0.106_962_360_768_555_36,
            0.023_837_269_238_639_398,
            -0.003_360_707_835_127_584_4,
            0.000_101_925_184_115_571_03,
            6.430_225_113_002_188e-5,
            -1.244_745_033_133_323_6e-5,
            7.842_044_292_230_483e-7,
        ],
    );
    let large = 1.0 - exp64::<FMA>(log_rest);
    (if a < 1.0 { small } else { large } as f32).copysign(x)
}

#[inline(always)]
pub(crate) fn pow<const FMA: bool>(x: f32, y: f32) -> f32 {
    let a = x.abs() as f64;
    let l = log64::<FMA>(a);
    let l = if a < f64::INFINITY { l } else { a };
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let z = y as f64 * l;
    // x^0 and 1^y are 1 even for NaN, and (±1)^±∞ is 1.
    let one = y == 0.0 || x == 1.0 || (a == 1.0 && y.abs() == f32::INFINITY);
    let z = if one { 0.0 } else { z };
    let z = if z > 95.0 { 95.0 } else { z };
    let z = if z < -110.0 { -110.0 } else { z };
    let value = exp64::<FMA>(z) as f32;
    let whole = y.trunc() == y;
    let odd = whole && (y * 0.5).trunc() != y * 0.5;
    let value = if odd { value.copysign(x) } else { value };
    if x < 0.0 && !whole && a < f64::INFINITY { f32::NAN } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::BASELINE_FMA;

    /// The distance of `got` from `exact` in units of the last place of `exact` as an f32.
    fn ulps(got: f32, exact: f64) -> f64 {
        if got.is_nan() || exact.is_nan() {
            return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
        }
        let nearest = exact as f32;
        if got == nearest {
            return 0.0;
        }
        if nearest.is_infinite() || got.is_infinite() {
            return f64::INFINITY;
        }
        let above = f32::from_bits((nearest.abs().to_bits() + 1).min(f32::MAX.to_bits()));
        let unit = above as f64 - nearest.abs() as f64;
        (got as f64 - exact).abs() / unit.max(f32::from_bits(1) as f64)
    }

    fn samples() -> impl Iterator<Item = f32> {
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            f32::from_bits(1),
            f32::from_bits(0x8000_0001),
            88.722_84,
            88.722_83,
            -87.336_55,
            -103.972_08,
            -103.98,
            -104.5,
            1e-8,
            16_777_216.0,
            3.999_999,
            std::f32::consts::FRAC_PI_2,
            std::f32::consts::PI,
            4.0e6,
            4.000_001e6,
            1e10,
        ];
        let every = (0..=u32::MAX).step_by(997).map(f32::from_bits);
        special.into_iter().chain(every)
    }

    fn worst(name: &str, limit: f64, ours: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) {
        let mut worst = (0.0, 0f32);
        for x in samples() {
            let error = ulps(ours(x), exact(x as f64));
            if error > worst.0 {
                worst = (error, x);
            }
        }
        println!("{name}: {:.3} ulp at {:e}", worst.0, worst.1);
        assert!(worst.0 <= limit, "{name}: {} ulp at {:e}", worst.0, worst.1);
    }

    fn far(near: fn(f32) -> f32, far: fn(f32) -> f32) -> impl Fn(f32) -> f32 {
        move |x| if x.abs() > TURNS_LIMIT { far(x) } else { near(x) }
    }

    #[test]
    fn errors_are_within_what_the_module_states() {
        const F: bool = BASELINE_FMA || cfg!(target_feature = "fma");
        worst("exp", 1.0, exp::<F>, f64::exp);
        worst("expm1", 2.0, expm1::<F>, f64::exp_m1);
        worst("log", 1.0, log::<F>, f64::ln);
        worst("log1p", 1.0, log1p::<F>, f64::ln_1p);
        worst("sin", 1.0, far(sin::<F>, sin_far), f64::sin);
        worst("cos", 1.0, far(cos::<F>, cos_far), f64::cos);
        worst("tan", 1.0, far(tan::<F>, tan_far), f64::tan);
        worst("tanh", 2.0, tanh::<F>, f64::tanh);
        worst("erf", 1.0, erf::<F>, vramlab_ir::eval::erf);
    }

    #[test]
    fn errors_hold_with_contraction_too() {
        worst("exp fma", 1.0, exp::<true>, f64::exp);
        worst("expm1 fma", 2.0, expm1::<true>, f64::exp_m1);
        worst("log fma", 1.0, log::<true>, f64::ln);
        worst("log1p fma", 1.0, log1p::<true>, f64::ln_1p);
        worst("sin fma", 1.0, far(sin::<true>, sin_far), f64::sin);
        worst("cos fma", 1.0, far(cos::<true>, cos_far), f64::cos);
        worst("tan fma", 1.0, far(tan::<true>, tan_far), f64::tan);
        worst("tanh fma", 2.0, tanh::<true>, f64::tanh);
        worst("erf fma", 1.0, erf::<true>, vramlab_ir::eval::erf);
    }

    #[test]
    fn the_usual_exp_has_the_bits_of_the_other() {
        for x in samples().filter(|x| x.abs() < 87.0) {
            assert_eq!(exp::<true>(x).to_bits(), usual_exp::<true>(x).to_bits(), "exp({x:e})");
        }
    }

    #[test]
    fn zeros_keep_their_sign() {
        for f in [expm1::<true>, tanh::<true>, sin::<true>, tan::<true>, log1p::<true>, erf::<true>]
        {
            assert_eq!(f(-0.0).to_bits(), (-0f32).to_bits());
            assert_eq!(f(0.0).to_bits(), 0f32.to_bits());
        }
    }

    #[test]
    fn pow_agrees_with_the_standard_library_and_its_special_cases() {
        let bases = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.0,
            -2.0,
            0.5,
            1e-30,
            1e30,
            -1e30,
            10.0,
            0.999_999,
            1.000_001,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MIN_POSITIVE,
            f32::from_bits(3),
            f32::MAX,
        ];
        let mut worst = 0f64;
        for &x in &bases {
            for &y in bases.iter().chain(&[3.0, -3.0, 4.0, 0.25, -0.5, 127.0, 16_777_217.0, 33.3]) {
                for (x, y) in [(x, y), (x * 1.37, y), (x, y * 0.71), (x, y.trunc())] {
                    let (got, exact) = (pow::<true>(x, y), (x as f64).powf(y as f64));
                    let error = ulps(got, exact);
                    assert!(error <= 1.0, "pow({x:e}, {y:e}) = {got:e}, not {exact:e}");
                    let std = x.powf(y);
                    assert_eq!(
                        got.is_sign_negative(),
                        std.is_sign_negative() && !std.is_nan()
                            || got.is_nan() && got.is_sign_negative()
                    );
                    worst = worst.max(error);
                }
            }
        }
        println!("pow: {worst:.3} ulp");
    }
}
