//! The arithmetic of the loop language as block functions, looked up by op and dtype.

use super::lanes::{BlockFn, CHUNK, Every, Fewer, One, Op1, Op2, Op3, Slow, Three, Two, Versions};
use super::number::{Float, Integer, Number};
use crate::cpu::isa::Isa;
use std::marker::PhantomData;
use vramlab_ir::{DType, ScalarOp};

macro_rules! op1 {
    ($($name:ident<$bound:ident> $out:ty: |$a:ident| $value:expr;)*) => {$(
        pub(super) struct $name<T>(PhantomData<T>);
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
        for a in a {
            usual &= a.has_usual_exp();
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
                for a in a {
                    far |= a.is_far();
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
            Fused::MulAdd => Every::pick::<Three<MulAdd<T>>>(isa),
            Fused::MulSub => Every::pick::<Three<MulSub<T>>>(isa),
            Fused::SubMul => Every::pick::<Three<SubMul<T>>>(isa),
        }
    }
    if dtype == DType::F64 { of::<f64>(op, isa) } else { of::<f32>(op, isa) }
}

/// Copies blocks of elements of `size` bytes, spreading a splat.
pub(super) fn copy(size: usize, isa: Isa) -> BlockFn {
    match size {
        1 => Every::pick::<One<Copied<u8>>>(isa),
        2 => Every::pick::<One<Half>>(isa),
        4 => Every::pick::<One<Copied<u32>>>(isa),
        _ => Every::pick::<One<Copied<i64>>>(isa),
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
        DType::U32 if op == ScalarOp::Threefry => Some(Every::pick::<Three<Threefry>>(isa)),
        DType::U32 => integer::<u32>(op, isa).or_else(|| number::<u32>(op, isa)),
        DType::U8 => integer::<u8>(op, isa).or_else(|| number::<u8>(op, isa)),
        DType::Bool => boolean(op, isa),
        DType::F16 | DType::BF16 => None,
    }
}

fn boolean(op: ScalarOp, isa: Isa) -> Option<BlockFn> {
    match op {
        ScalarOp::Not => Some(Fewer::pick::<One<NotBool>>(isa)),
        ScalarOp::Add | ScalarOp::Or | ScalarOp::Max => Some(Fewer::pick::<Two<Or<u8>>>(isa)),
        ScalarOp::Mul | ScalarOp::And | ScalarOp::Min => Some(Fewer::pick::<Two<And<u8>>>(isa)),
        ScalarOp::Xor => Some(Fewer::pick::<Two<Xor<u8>>>(isa)),
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
        ScalarOp::Neg => T::Arithmetic::pick::<One<Neg<T>>>(isa),
        ScalarOp::Abs => T::Arithmetic::pick::<One<Absolute<T>>>(isa),
        ScalarOp::Sign => T::Arithmetic::pick::<One<Sign<T>>>(isa),
        ScalarOp::IsFinite => T::Arithmetic::pick::<One<IsFinite<T>>>(isa),
        ScalarOp::Add => T::Arithmetic::pick::<Two<Add<T>>>(isa),
        ScalarOp::Sub => T::Arithmetic::pick::<Two<Sub<T>>>(isa),
        ScalarOp::Mul => T::Arithmetic::pick::<Two<Mul<T>>>(isa),
        ScalarOp::Div => T::Arithmetic::pick::<Two<Div<T>>>(isa),
        ScalarOp::Rem => T::Arithmetic::pick::<Two<Rem<T>>>(isa),
        ScalarOp::Pow => T::Arithmetic::pick::<Two<Power<T>>>(isa),
        ScalarOp::Max => T::Arithmetic::pick::<Two<Greater<T>>>(isa),
        ScalarOp::Min => T::Arithmetic::pick::<Two<Lesser<T>>>(isa),
        ScalarOp::Eq => T::Arithmetic::pick::<Two<Eq<T>>>(isa),
        ScalarOp::Ne => T::Arithmetic::pick::<Two<Ne<T>>>(isa),
        // `Gt` and `Ge` come with their operands swapped: see `swapped`.
        ScalarOp::Lt | ScalarOp::Gt => T::Arithmetic::pick::<Two<Lt<T>>>(isa),
        ScalarOp::Le | ScalarOp::Ge => T::Arithmetic::pick::<Two<Le<T>>>(isa),
        ScalarOp::Select => T::Arithmetic::pick::<Three<Select<T>>>(isa),
        _ => return None,
    })
}

/// Whether the block function of `op` fetches what lies ahead while it works ([`super::lanes::Slow`]).
pub(super) fn fetches(op: ScalarOp, dtype: DType) -> bool {
    use ScalarOp::*;
    dtype.is_float() && matches!(op, Exp | Expm1 | Log | Log1p | Sin | Cos | Tan | Tanh | Erf)
}

/// Whether the block function of `op` takes its two operands the other way round.
pub(super) fn swapped(op: ScalarOp) -> bool {
    matches!(op, ScalarOp::Gt | ScalarOp::Ge)
}

fn integer<T: Integer>(op: ScalarOp, isa: Isa) -> Option<BlockFn> {
    Some(match op {
        ScalarOp::Floor | ScalarOp::Ceil | ScalarOp::Round => {
            T::Arithmetic::pick::<One<Copied<T>>>(isa)
        }
        ScalarOp::Not => T::Arithmetic::pick::<One<NotInteger<T>>>(isa),
        ScalarOp::And => T::Arithmetic::pick::<Two<And<T>>>(isa),
        ScalarOp::Or => T::Arithmetic::pick::<Two<Or<T>>>(isa),
        ScalarOp::Xor => T::Arithmetic::pick::<Two<Xor<T>>>(isa),
        ScalarOp::ShiftLeft => T::Arithmetic::pick::<Two<ShiftLeft<T>>>(isa),
        ScalarOp::ShiftRight => T::Arithmetic::pick::<Two<ShiftRight<T>>>(isa),
        _ => return None,
    })
}

fn float<T: Float>(op: ScalarOp, isa: Isa) -> Option<BlockFn> {
    Some(match op {
        ScalarOp::Floor => T::Arithmetic::pick::<One<Floor<T>>>(isa),
        ScalarOp::Ceil => T::Arithmetic::pick::<One<Ceil<T>>>(isa),
        ScalarOp::Round => T::Arithmetic::pick::<One<Round<T>>>(isa),
        ScalarOp::Sqrt => T::Arithmetic::pick::<One<Sqrt<T>>>(isa),
        ScalarOp::Rsqrt => T::Arithmetic::pick::<One<Rsqrt<T>>>(isa),
        ScalarOp::Exp => T::Functions::pick::<Slow<Exp<T>>>(isa),
        ScalarOp::Expm1 => T::Functions::pick::<Slow<Expm1<T>>>(isa),
        ScalarOp::Log => T::Functions::pick::<Slow<Log<T>>>(isa),
        ScalarOp::Log1p => T::Functions::pick::<Slow<Log1p<T>>>(isa),
        ScalarOp::Sin => T::Functions::pick::<Slow<Sin<T>>>(isa),
        ScalarOp::Cos => T::Functions::pick::<Slow<Cos<T>>>(isa),
        ScalarOp::Tan => T::Functions::pick::<Slow<Tan<T>>>(isa),
        ScalarOp::Tanh => T::Functions::pick::<Slow<Tanh<T>>>(isa),
        ScalarOp::Erf => T::Functions::pick::<Slow<Erf<T>>>(isa),
        ScalarOp::Atan2 => T::Functions::pick::<Two<Atan2<T>>>(isa),
        _ => return None,
    })
}
