//! Conversions between element types as block functions.

use super::lanes::{BlockFn, Fewer, One, Op1, Versions};
use super::number::Number;
use super::ops::{self, Copied};
use crate::cpu::isa::Isa;
use std::marker::PhantomData;
use vramlab_ir::DType;

/// A conversion as a chain of block functions with the dtype that each gives: the 16-bit floats go through f32.
pub(super) fn conversion(from: DType, to: DType, isa: Isa) -> Vec<(BlockFn, DType)> {
    let through = |dtype: DType| matches!(dtype, DType::F16 | DType::BF16);
    match (from, to) {
        _ if from == to => vec![(ops::copy(from.size(), isa), to)],
        (DType::F16, DType::F32) => vec![(Fewer::pick::<One<FromF16>>(isa), to)],
        (DType::BF16, DType::F32) => vec![(Fewer::pick::<One<FromBF16>>(isa), to)],
        (DType::F32, DType::F16) => vec![(Fewer::pick::<One<ToF16>>(isa), to)],
        (DType::F32, DType::BF16) => vec![(Fewer::pick::<One<ToBF16>>(isa), to)],
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
                $($((DType::$from_name, DType::$to_name) => Fewer::pick::<One<Cast<$from, $to>>>(isa),)*)*
                (DType::F32, _) => Fewer::pick::<One<Truth<f32>>>(isa),
                (DType::F64, _) => Fewer::pick::<One<Truth<f64>>>(isa),
                (DType::I32, _) => Fewer::pick::<One<Truth<i32>>>(isa),
                (DType::I64, _) => Fewer::pick::<One<Truth<i64>>>(isa),
                (DType::U32, _) => Fewer::pick::<One<Truth<u32>>>(isa),
                // A bool is a number of 0 or 1 already.
                (DType::Bool, DType::U8) => Fewer::pick::<One<Copied<u8>>>(isa),
                _ => Fewer::pick::<One<Truth<u8>>>(isa),
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
