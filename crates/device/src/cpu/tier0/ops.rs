//! The arithmetic of the loop language as block functions, looked up by op and dtype.

use super::lanes::{BlockFn, CHUNK, One, Op1, Op2, Op3, Three, Two, pick};
use super::math;
use crate::cpu::isa::Isa;
use std::marker::PhantomData;
use vramlab_ir::{DType, ScalarOp};

/// What every element type can do. Bool is a `u8` of 0 or 1.
pub(super) trait Number: Copy + PartialOrd + Default + 'static {
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
    ($t:ty, $absolute:expr, $sign:expr) => {
        impl Number for $t {
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

integer!(i32, <i32>::wrapping_abs, <i32>::signum);
integer!(i64, <i64>::wrapping_abs, <i64>::signum);
integer!(u32, |x| x, |x| (x != 0) as u32);
integer!(u8, |x| x, |x| (x != 0) as u8);
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
    ($t:ty, [$($name:ident = $value:expr),*], $erf:expr, [$limit:expr, $sin:expr, $cos:expr, $tan:expr]) => {
        impl Float for $t {
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

macro_rules! op1 {
    ($($name:ident<$bound:ident> $out:ty: |$a:ident| $value:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: $bound> Op1 for $name<T> {
            type A = T;
            type O = $out;
            #[inline(always)]
            fn lane<const FMA: bool>($a: T) -> $out {
                $value
            }
        }
    )*};
}

macro_rules! op2 {
    ($($name:ident<$bound:ident> $out:ty: |$a:ident, $b:ident| $value:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: $bound> Op2 for $name<T> {
            type A = T;
            type B = T;
            type O = $out;
            #[inline(always)]
            fn lane<const FMA: bool>($a: T, $b: T) -> $out {
                $value
            }
        }
    )*};
}

macro_rules! op3 {
    ($($name:ident<$bound:ident> $first:ty, $out:ty: |$a:ident, $b:ident, $c:ident| $value:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: $bound> Op3 for $name<T> {
            type A = $first;
            type B = T;
            type C = T;
            type O = $out;
            #[inline(always)]
            fn lane<const FMA: bool>($a: $first, $b: T, $c: T) -> $out {
                $value
            }
        }
    )*};
}

op1! {
    Neg<Number> T: |a| a.neg();
    Absolute<Number> T: |a| a.absolute();
    Sign<Number> T: |a| a.sign();
    IsFinite<Number> u8: |a| a.is_finite() as u8;
    Copied<Number> T: |a| a;
    Floor<Float> T: |a| a.floor();
    Ceil<Float> T: |a| a.ceil();
    Round<Float> T: |a| a.round();
    Sqrt<Float> T: |a| a.sqrt();
    Rsqrt<Float> T: |a| a.rsqrt();
    Expm1<Float> T: |a| a.expm1::<FMA>();
    Log<Float> T: |a| a.log::<FMA>();
    Log1p<Float> T: |a| a.log1p::<FMA>();
    Tanh<Float> T: |a| a.tanh::<FMA>();
    Erf<Float> T: |a| a.erf::<FMA>();
    NotInteger<Integer> T: |a| !a;
}

op2! {
    Add<Number> T: |a, b| a.add(b);
    Sub<Number> T: |a, b| a.sub(b);
    Mul<Number> T: |a, b| a.mul(b);
    Div<Number> T: |a, b| a.div(b);
    Rem<Number> T: |a, b| a.rem(b);
    Power<Number> T: |a, b| a.power::<FMA>(b);
    Greater<Number> T: |a, b| a.greater(b);
    Lesser<Number> T: |a, b| a.lesser(b);
    Eq<Number> u8: |a, b| (a == b) as u8;
    Ne<Number> u8: |a, b| (a != b) as u8;
    Lt<Number> u8: |a, b| (a < b) as u8;
    Le<Number> u8: |a, b| (a <= b) as u8;
    Atan2<Float> T: |a, b| a.atan2(b);
    And<Integer> T: |a, b| a & b;
    Or<Integer> T: |a, b| a | b;
    Xor<Integer> T: |a, b| a ^ b;
    ShiftLeft<Integer> T: |a, b| a.shift_left(b);
    ShiftRight<Integer> T: |a, b| a.shift_right(b);
}

op3! {
    Select<Number> u8, T: |a, b, c| if a != 0 { b } else { c };
    MulAdd<Float> T, T: |a, b, c| Float::mul_add(a, b, c);
    MulSub<Float> T, T: |a, b, c| Float::mul_add(a, b, c.neg());
    SubMul<Float> T, T: |a, b, c| Float::mul_add(a.neg(), b, c);
}

struct Exp<T>(PhantomData<T>);
impl<T: Float> Op1 for Exp<T> {
    type A = T;
    type O = T;
    #[inline(always)]
    fn lane<const FMA: bool>(a: T) -> T {
        a.exp::<FMA>()
    }
    /// Chunks without an extreme lane do without the care that those need.
    #[inline(always)]
    fn chunk<const FMA: bool>(out: &mut [T; CHUNK], a: &[T; CHUNK]) {
        let mut usual = true;
        for i in 0..CHUNK {
            usual &= a[i].has_usual_exp();
        }
        if usual {
            for i in 0..CHUNK {
                out[i] = a[i].usual_exp::<FMA>();
            }
        } else {
            for i in 0..CHUNK {
                out[i] = a[i].exp::<FMA>();
            }
        }
    }
}

/// Sine, cosine and tangent: fast lanes first, then those that are too far for the fast reduction.
macro_rules! circular {
    ($($name:ident: $near:ident, $far:ident;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Float> Op1 for $name<T> {
            type A = T;
            type O = T;
            #[inline(always)]
            fn lane<const FMA: bool>(a: T) -> T {
                a.$near::<FMA>()
            }
            #[inline(always)]
            fn chunk<const FMA: bool>(out: &mut [T; CHUNK], a: &[T; CHUNK]) {
                let mut far = false;
                for i in 0..CHUNK {
                    far |= a[i].is_far();
                }
                for i in 0..CHUNK {
                    out[i] = a[i].$near::<FMA>();
                }
                if far {
                    for i in 0..CHUNK {
                        if a[i].is_far() {
                            out[i] = a[i].$far();
                        }
                    }
                }
            }
        }
    )*};
}

circular! {
    Sin: sin, sin_far;
    Cos: cos, cos_far;
    Tan: tan, tan_far;
}

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

struct NotBool;
impl Op1 for NotBool {
    type A = u8;
    type O = u8;
    #[inline(always)]
    fn lane<const FMA: bool>(a: u8) -> u8 {
        a ^ 1
    }
}

/// The first word of Threefry-2x32 with 20 rounds; key (a, b), counter (0, c).
struct Threefry;
impl Op3 for Threefry {
    type A = u32;
    type B = u32;
    type C = u32;
    type O = u32;
    #[inline(always)]
    fn lane<const FMA: bool>(a: u32, b: u32, c: u32) -> u32 {
        const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
        let keys = [a, b, 0x1bd1_1bda ^ a ^ b];
        let (mut x, mut y) = (a, c.wrapping_add(b));
        let mut group = 0;
        while group < 5 {
            let mut round = 0;
            while round < 4 {
                x = x.wrapping_add(y);
                y = y.rotate_left(ROTATIONS[group % 2][round]) ^ x;
                round += 1;
            }
            x = x.wrapping_add(keys[(group + 1) % 3]);
            y = y.wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
            group += 1;
        }
        x
    }
}

/// An op that the scalar language has no name for: made by contraction, or a plain copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fused {
    /// a·b + c
    MulAdd,
    /// a·b − c
    MulSub,
    /// c − a·b
    SubMul,
}

/// The block function of a contracted op; `dtype` is f32 or f64.
pub(super) fn fused(op: Fused, dtype: DType, isa: Isa) -> BlockFn {
    fn of<T: Float>(op: Fused, isa: Isa) -> BlockFn {
        match op {
            Fused::MulAdd => pick::<Three<MulAdd<T>>>(isa),
            Fused::MulSub => pick::<Three<MulSub<T>>>(isa),
            Fused::SubMul => pick::<Three<SubMul<T>>>(isa),
        }
    }
    if dtype == DType::F64 { of::<f64>(op, isa) } else { of::<f32>(op, isa) }
}

/// Copies blocks of elements of `size` bytes, spreading a splat.
pub(super) fn copy(size: usize, isa: Isa) -> BlockFn {
    match size {
        1 => pick::<One<Copied<u8>>>(isa),
        2 => pick::<One<Half>>(isa),
        4 => pick::<One<Copied<u32>>>(isa),
        _ => pick::<One<Copied<i64>>>(isa),
    }
}

struct Half;
impl Op1 for Half {
    type A = u16;
    type O = u16;
    #[inline(always)]
    fn lane<const FMA: bool>(a: u16) -> u16 {
        a
    }
}

/// The block function of `op` on operands of `dtype`, or `None` where the type has no such function of its own.
pub(super) fn lookup(op: ScalarOp, dtype: DType, isa: Isa) -> Option<BlockFn> {
    match dtype {
        DType::F32 => float::<f32>(op, isa).or_else(|| number::<f32>(op, isa)),
        DType::F64 => float::<f64>(op, isa).or_else(|| number::<f64>(op, isa)),
        DType::I32 => integer::<i32>(op, isa).or_else(|| number::<i32>(op, isa)),
        DType::I64 => integer::<i64>(op, isa).or_else(|| number::<i64>(op, isa)),
        DType::U32 if op == ScalarOp::Threefry => Some(pick::<Three<Threefry>>(isa)),
        DType::U32 => integer::<u32>(op, isa).or_else(|| number::<u32>(op, isa)),
        DType::U8 => integer::<u8>(op, isa).or_else(|| number::<u8>(op, isa)),
        DType::Bool => boolean(op, isa),
        DType::F16 | DType::BF16 => None,
    }
}

fn boolean(op: ScalarOp, isa: Isa) -> Option<BlockFn> {
    match op {
        ScalarOp::Not => Some(pick::<One<NotBool>>(isa)),
        ScalarOp::Add | ScalarOp::Or | ScalarOp::Max => Some(pick::<Two<Or<u8>>>(isa)),
        ScalarOp::Mul | ScalarOp::And | ScalarOp::Min => Some(pick::<Two<And<u8>>>(isa)),
        ScalarOp::Xor => Some(pick::<Two<Xor<u8>>>(isa)),
        ScalarOp::Select
        | ScalarOp::IsFinite
        | ScalarOp::Eq
        | ScalarOp::Ne
        | ScalarOp::Lt
        | ScalarOp::Le
        | ScalarOp::Gt
        | ScalarOp::Ge => number::<u8>(op, isa),
        _ => None,
    }
}

fn number<T: Number>(op: ScalarOp, isa: Isa) -> Option<BlockFn> {
    Some(match op {
        ScalarOp::Neg => pick::<One<Neg<T>>>(isa),
        ScalarOp::Abs => pick::<One<Absolute<T>>>(isa),
        ScalarOp::Sign => pick::<One<Sign<T>>>(isa),
        ScalarOp::IsFinite => pick::<One<IsFinite<T>>>(isa),
        ScalarOp::Add => pick::<Two<Add<T>>>(isa),
        ScalarOp::Sub => pick::<Two<Sub<T>>>(isa),
        ScalarOp::Mul => pick::<Two<Mul<T>>>(isa),
        ScalarOp::Div => pick::<Two<Div<T>>>(isa),
        ScalarOp::Rem => pick::<Two<Rem<T>>>(isa),
        ScalarOp::Pow => pick::<Two<Power<T>>>(isa),
        ScalarOp::Max => pick::<Two<Greater<T>>>(isa),
        ScalarOp::Min => pick::<Two<Lesser<T>>>(isa),
        ScalarOp::Eq => pick::<Two<Eq<T>>>(isa),
        ScalarOp::Ne => pick::<Two<Ne<T>>>(isa),
        // `Gt` and `Ge` come with their operands swapped: see `swapped`.
        ScalarOp::Lt | ScalarOp::Gt => pick::<Two<Lt<T>>>(isa),
        ScalarOp::Le | ScalarOp::Ge => pick::<Two<Le<T>>>(isa),
        ScalarOp::Select => pick::<Three<Select<T>>>(isa),
        _ => return None,
    })
}

/// Whether the block function of `op` takes its two operands the other way round.
pub(super) fn swapped(op: ScalarOp) -> bool {
    matches!(op, ScalarOp::Gt | ScalarOp::Ge)
}

fn integer<T: Integer>(op: ScalarOp, isa: Isa) -> Option<BlockFn> {
    Some(match op {
        ScalarOp::Floor | ScalarOp::Ceil | ScalarOp::Round => pick::<One<Copied<T>>>(isa),
        ScalarOp::Not => pick::<One<NotInteger<T>>>(isa),
        ScalarOp::And => pick::<Two<And<T>>>(isa),
        ScalarOp::Or => pick::<Two<Or<T>>>(isa),
        ScalarOp::Xor => pick::<Two<Xor<T>>>(isa),
        ScalarOp::ShiftLeft => pick::<Two<ShiftLeft<T>>>(isa),
        ScalarOp::ShiftRight => pick::<Two<ShiftRight<T>>>(isa),
        _ => return None,
    })
}

fn float<T: Float>(op: ScalarOp, isa: Isa) -> Option<BlockFn> {
    Some(match op {
        ScalarOp::Floor => pick::<One<Floor<T>>>(isa),
        ScalarOp::Ceil => pick::<One<Ceil<T>>>(isa),
        ScalarOp::Round => pick::<One<Round<T>>>(isa),
        ScalarOp::Sqrt => pick::<One<Sqrt<T>>>(isa),
        ScalarOp::Rsqrt => pick::<One<Rsqrt<T>>>(isa),
        ScalarOp::Exp => pick::<One<Exp<T>>>(isa),
        ScalarOp::Expm1 => pick::<One<Expm1<T>>>(isa),
        ScalarOp::Log => pick::<One<Log<T>>>(isa),
        ScalarOp::Log1p => pick::<One<Log1p<T>>>(isa),
        ScalarOp::Sin => pick::<One<Sin<T>>>(isa),
        ScalarOp::Cos => pick::<One<Cos<T>>>(isa),
        ScalarOp::Tan => pick::<One<Tan<T>>>(isa),
        ScalarOp::Tanh => pick::<One<Tanh<T>>>(isa),
        ScalarOp::Erf => pick::<One<Erf<T>>>(isa),
        ScalarOp::Atan2 => pick::<Two<Atan2<T>>>(isa),
        _ => return None,
    })
}

/// A conversion as a chain of block functions with the dtype that each gives: the 16-bit floats go through f32.
pub(super) fn conversion(from: DType, to: DType, isa: Isa) -> Vec<(BlockFn, DType)> {
    let through = |dtype: DType| matches!(dtype, DType::F16 | DType::BF16);
    match (from, to) {
        _ if from == to => vec![(copy(from.size(), isa), to)],
        (DType::F16, DType::F32) => vec![(pick::<One<FromF16>>(isa), to)],
        (DType::BF16, DType::F32) => vec![(pick::<One<FromBF16>>(isa), to)],
        (DType::F32, DType::F16) => vec![(pick::<One<ToF16>>(isa), to)],
        (DType::F32, DType::BF16) => vec![(pick::<One<ToBF16>>(isa), to)],
        _ if through(from) || through(to) => {
            let mut chain = conversion(from, DType::F32, isa);
            chain.extend(conversion(DType::F32, to, isa));
            chain
        }
        _ => vec![(direct_conversion(from, to, isa), to)],
    }
}

struct Cast<A, O>(PhantomData<(A, O)>);
struct Truth<A>(PhantomData<A>);

impl<T: Number> Op1 for Truth<T> {
    type A = T;
    type O = u8;
    #[inline(always)]
    fn lane<const FMA: bool>(a: T) -> u8 {
        (a != T::ZERO) as u8
    }
}

macro_rules! casts {
    ($($from:ty => $($to:ty),*;)*) => {$($(
        impl Op1 for Cast<$from, $to> {
            type A = $from;
            type O = $to;
            #[inline(always)]
            fn lane<const FMA: bool>(a: $from) -> $to {
                a as $to
            }
        }
    )*)*};
}

casts! {
    f32 => f64, i32, i64, u32, u8;
    f64 => f32, i32, i64, u32, u8;
    i32 => f32, f64, i64, u32, u8;
    i64 => f32, f64, i32, u32, u8;
    u32 => f32, f64, i32, i64, u8;
    u8 => f32, f64, i32, i64, u32;
}

fn direct_conversion(from: DType, to: DType, isa: Isa) -> BlockFn {
    macro_rules! table {
        ($($from_name:ident $from:ty => $($to_name:ident $to:ty),*;)*) => {
            match (from, to) {
                $($((DType::$from_name, DType::$to_name) => pick::<One<Cast<$from, $to>>>(isa),)*)*
                (DType::F32, _) => pick::<One<Truth<f32>>>(isa),
                (DType::F64, _) => pick::<One<Truth<f64>>>(isa),
                (DType::I32, _) => pick::<One<Truth<i32>>>(isa),
                (DType::I64, _) => pick::<One<Truth<i64>>>(isa),
                (DType::U32, _) => pick::<One<Truth<u32>>>(isa),
                // A bool is a number of 0 or 1 already.
                (DType::Bool, DType::U8) => pick::<One<Copied<u8>>>(isa),
                _ => pick::<One<Truth<u8>>>(isa),
            }
        };
    }
    table! {
        F32 f32 => F64 f64, I32 i32, I64 i64, U32 u32, U8 u8;
        F64 f64 => F32 f32, I32 i32, I64 i64, U32 u32, U8 u8;
        I32 i32 => F32 f32, F64 f64, I64 i64, U32 u32, U8 u8;
        I64 i64 => F32 f32, F64 f64, I32 i32, U32 u32, U8 u8;
        U32 u32 => F32 f32, F64 f64, I32 i32, I64 i64, U8 u8;
        U8 u8 => F32 f32, F64 f64, I32 i32, I64 i64, U32 u32;
        Bool u8 => F32 f32, F64 f64, I32 i32, I64 i64, U32 u32;
    }
}

struct FromF16;
impl Op1 for FromF16 {
    type A = u16;
    type O = f32;
    #[inline(always)]
    fn lane<const FMA: bool>(a: u16) -> f32 {
        // Shifted into place, the exponent is 112 too small: a product corrects it, and makes subnormals normal.
        let magnitude = (a as u32 & 0x7fff) << 13;
        let value = f32::from_bits(magnitude) * f32::from_bits((254 - 15) << 23);
        let value =
            if magnitude >= 0x1f << 23 { f32::from_bits(magnitude | 0xff << 23) } else { value };
        f32::from_bits(value.to_bits() | (a as u32 & 0x8000) << 16)
    }
}

struct FromBF16;
impl Op1 for FromBF16 {
    type A = u16;
    type O = f32;
    #[inline(always)]
    fn lane<const FMA: bool>(a: u16) -> f32 {
        f32::from_bits((a as u32) << 16)
    }
}

struct ToF16;
impl Op1 for ToF16 {
    type A = f32;
    type O = u16;
    #[inline(always)]
    fn lane<const FMA: bool>(a: f32) -> u16 {
        let bits = a.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        // Normal results: rebase the exponent, round half to even by a carry; overflow runs into infinity.
        let normal =
            magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
        let normal = if normal > 0x7c00 { 0x7c00 } else { normal };
        // Subnormal results: adding 1/2 aligns the mantissa so that the sum's low bits are the answer, rounded.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let half = if magnitude < 113 << 23 { subnormal } else { normal };
        let nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
        let half = if magnitude > 0xff << 23 { nan } else { half };
        (half | (bits >> 16 & 0x8000)) as u16
    }
}

struct ToBF16;
impl Op1 for ToBF16 {
    type A = f32;
    type O = u16;
    #[inline(always)]
    fn lane<const FMA: bool>(a: f32) -> u16 {
        let bits = a.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        (if a.is_nan() { bits >> 16 | 0x40 } else { rounded }) as u16
    }
}
