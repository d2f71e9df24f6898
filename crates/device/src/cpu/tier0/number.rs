//! What element types can do, one lane at a time. Bool is a `u8` of 0 or 1.

use super::lanes::{Every, Fewer, Single, Versions};
use super::math;

/// What every element type can do.
pub(super) trait Number: Copy + PartialOrd + Default + 'static {
    /// Of arithmetic, comparisons and reductions.
    type Arithmetic: Versions;
    const ZERO: Self;
    const ONE: Self;
    /// No value is less, and none is greater.
    const LOWEST: Self;
    const HIGHEST: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn rem(self, other: Self) -> Self;
    fn power<const FMA: bool>(self, other: Self) -> Self;
    fn neg(self) -> Self;
    fn absolute(self) -> Self;
    fn sign(self) -> Self;
    fn is_nan(self) -> bool;
    fn is_finite(self) -> bool;

    /// The greater one; a NaN wins.
    #[inline(always)]
    fn greater(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The lesser one; a NaN wins.
    #[inline(always)]
    fn lesser(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }
}

macro_rules! integer {
    ($t:ty, $versions:ty, $absolute:expr, $sign:expr) => {
        impl Number for $t {
            type Arithmetic = $versions;
            const ZERO: $t = 0;
            const ONE: $t = 1;
            const LOWEST: $t = <$t>::MIN;
            const HIGHEST: $t = <$t>::MAX;
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: $t) -> $t {
                // All ones: −1 where there is a sign.
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn rem(self, other: $t) -> $t {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn power<const FMA: bool>(self, other: $t) -> $t {
                integer_power(self, other)
            }
            #[inline(always)]
            fn neg(self) -> $t {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn absolute(self) -> $t {
                $absolute(self)
            }
            #[inline(always)]
            fn sign(self) -> $t {
                $sign(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                true
            }
        }
    };
}

macro_rules! float {
    ($t:ty, $power:expr) => {
        impl Number for $t {
            type Arithmetic = Every;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const HIGHEST: $t = <$t>::INFINITY;
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self * other
            }
            #[inline(always)]
            fn div(self, other: $t) -> $t {
                self / other
            }
            #[inline(always)]
            fn rem(self, other: $t) -> $t {
                self % other
            }
            #[inline(always)]
            fn power<const FMA: bool>(self, other: $t) -> $t {
                $power(self, other)
            }
            #[inline(always)]
            fn neg(self) -> $t {
                -self
            }
            #[inline(always)]
            fn absolute(self) -> $t {
                self.abs()
            }
            #[inline(always)]
            fn sign(self) -> $t {
                // A NaN and both zeros are their own sign.
                let sign = if self > 0.0 { 1.0 } else { self };
                if self < 0.0 { -1.0 } else { sign }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.abs() < <$t>::INFINITY
            }
        }
    };
}

integer!(i32, Every, <i32>::wrapping_abs, <i32>::signum);
integer!(i64, Fewer, <i64>::wrapping_abs, <i64>::signum);
integer!(u32, Fewer, |x| x, |x| (x != 0) as u32);
integer!(u8, Fewer, |x| x, |x| (x != 0) as u8);
float!(f32, math::pow::<FMA>);
float!(f64, f64::powf);

/// By squaring, wrapping; negative exponents give 0, but ±1 for the bases ±1.
fn integer_power<T: Number>(base: T, exponent: T) -> T {
    let (two, minus_one) = (T::ONE.add(T::ONE), T::ZERO.sub(T::ONE));
    let odd = |x: T| x.rem(two) != T::ZERO;
    if exponent < T::ZERO {
        return match base {
            _ if base == T::ONE => T::ONE,
            _ if base == minus_one => {
                if odd(exponent) {
                    minus_one
                } else {
                    T::ONE
                }
            }
            _ => T::ZERO,
        };
    }
    let (mut result, mut square, mut left) = (T::ONE, base, exponent);
    while left > T::ZERO {
        if odd(left) {
            result = result.mul(square);
        }
        square = square.mul(square);
        left = left.div(two);
    }
    result
}

/// Floats and their functions.
pub(super) trait Float: Number {
    /// Of the elementary functions.
    type Functions: Versions;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round(self) -> Self;
    fn sqrt(self) -> Self;
    fn rsqrt(self) -> Self;
    fn exp<const FMA: bool>(self) -> Self;
    /// Whether the result is a normal number that `usual_exp` gives with the same bits.
    fn has_usual_exp(self) -> bool;
    fn usual_exp<const FMA: bool>(self) -> Self;
    fn expm1<const FMA: bool>(self) -> Self;
    fn log<const FMA: bool>(self) -> Self;
    fn log1p<const FMA: bool>(self) -> Self;
    fn sin<const FMA: bool>(self) -> Self;
    fn cos<const FMA: bool>(self) -> Self;
    fn tan<const FMA: bool>(self) -> Self;
    fn tanh<const FMA: bool>(self) -> Self;
    fn erf<const FMA: bool>(self) -> Self;
    fn atan2(self, other: Self) -> Self;
    /// `self·b + c` with one rounding.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// Whether sin, cos and tan must take the slow road.
    fn is_far(self) -> bool;
    fn sin_far(self) -> Self;
    fn cos_far(self) -> Self;
    fn tan_far(self) -> Self;
}

macro_rules! float_functions {
    ($t:ty, $versions:ty, [$($name:ident = $value:expr),*], $erf:expr, [$limit:expr, $sin:expr, $cos:expr, $tan:expr]) => {
        impl Float for $t {
            type Functions = $versions;
            $(#[inline(always)] fn $name<const FMA: bool>(self) -> $t { $value(self) })*
            #[inline(always)]
            fn floor(self) -> $t {
                <$t>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> $t {
                <$t>::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> $t {
                self.round_ties_even()
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn rsqrt(self) -> $t {
                1.0 / <$t>::sqrt(self)
            }
            #[inline(always)]
            fn erf<const FMA: bool>(self) -> $t {
                $erf(self)
            }
            #[inline(always)]
            fn atan2(self, other: $t) -> $t {
                <$t>::atan2(self, other)
            }
            #[inline(always)]
            fn mul_add(self, b: $t, c: $t) -> $t {
                <$t>::mul_add(self, b, c)
            }
            #[inline(always)]
            fn is_far(self) -> bool {
                self.abs() > $limit
            }
            #[inline(always)]
            fn has_usual_exp(self) -> bool {
                self.abs() < 87.0
            }
            fn sin_far(self) -> $t {
                $sin(self)
            }
            fn cos_far(self) -> $t {
                $cos(self)
            }
            fn tan_far(self) -> $t {
                $tan(self)
            }
        }
    };
}

float_functions!(
    f32,
    Every,
    [
        exp = math::exp::<FMA>,
        usual_exp = math::usual_exp::<FMA>,
        expm1 = math::expm1::<FMA>,
        log = math::log::<FMA>,
        log1p = math::log1p::<FMA>,
        sin = math::sin::<FMA>,
        cos = math::cos::<FMA>,
        tan = math::tan::<FMA>,
        tanh = math::tanh::<FMA>
    ],
    math::erf::<FMA>,
    [math::TURNS_LIMIT, math::sin_far, math::cos_far, math::tan_far]
);
float_functions!(
    f64,
    Single,
    [
        exp = f64::exp,
        usual_exp = f64::exp,
        expm1 = f64::exp_m1,
        log = f64::ln,
        log1p = f64::ln_1p,
        sin = f64::sin,
        cos = f64::cos,
        tan = f64::tan,
        tanh = f64::tanh
    ],
    vramlab_ir::eval::erf,
    [f64::INFINITY, f64::sin, f64::cos, f64::tan]
);

/// Bits. Shifts of the width or more give 0; to the right they are logical.
pub(super) trait Integer:
    Number
    + std::ops::Not<Output = Self>
    + std::ops::BitAnd<Output = Self>
    + std::ops::BitOr<Output = Self>
    + std::ops::BitXor<Output = Self>
{
    fn shift_left(self, by: Self) -> Self;
    fn shift_right(self, by: Self) -> Self;
}

macro_rules! shifts {
    ($($t:ty, $unsigned:ty;)*) => {$(
        impl Integer for $t {
            #[inline(always)]
            fn shift_left(self, by: $t) -> $t {
                let by = by as $unsigned;
                if by < <$t>::BITS as $unsigned { self << by } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, by: $t) -> $t {
                let by = by as $unsigned;
                if by < <$t>::BITS as $unsigned { (self as $unsigned >> by) as $t } else { 0 }
            }
        }
    )*};
}

shifts! { i32, u32; i64, u64; u32, u32; u8, u8; }
