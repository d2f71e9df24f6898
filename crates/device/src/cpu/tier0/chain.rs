//! Chains: arithmetic whose running value stays in registers.
//!
//! Block functions pass values through the first-level cache, which bounds simple arithmetic. Where each op's result
//! goes into the next op alone, the whole run of ops is one step instead: for 128 elements at a time (eight vectors of
//! AVX-512) a small loop over [`Micro`] ops works on the running value. Every op rounds as its block function does, so
//! results are the same bits.

use super::lanes::Operand;
use super::ops::Fused;
#[cfg(target_arch = "x86_64")]
use super::registers;
use super::step::SlotId;
use crate::cpu::isa::Isa;
use vramlab_ir::{DType, ScalarOp};

/// What is done with the running value x, and up to two operands a and b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// a
    Load,
    /// x + a
    Add,
    /// x − a
    Sub,
    /// a − x
    SubFrom,
    /// x · a
    Mul,
    /// x / a
    Div,
    /// a / x
    DivInto,
    /// The greater of x and a, as `greater(x, a)`.
    Max,
    /// `lesser(x, a)`
    Min,
    /// −x
    Neg,
    /// |x|
    Abs,
    /// √x
    Sqrt,
    /// x·a + b
    MulAdd,
    /// x·a − b
    MulSub,
    /// b − x·a
    NegMulAdd,
    /// a·b + x
    AddMul,
    /// a·b − x
    MulSubThis,
    /// x − a·b
    SubMul,
}

/// One op of a chain.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) struct Micro {
    pub kind: Kind,
    pub a: SlotId,
    pub b: SlotId,
}

/// `out`, all slots, the ops (a `Load` first), chunks.
pub(super) type ChainFn = unsafe fn(*mut u8, *const Operand, &[Micro], usize);

/// How an op continues a chain whose running value is operand `position`; `None` where it cannot.
pub(super) fn continues(op: ScalarOp, position: usize) -> Option<Kind> {
    Some(match (op, position) {
        (ScalarOp::Add, _) => Kind::Add,
        (ScalarOp::Mul, _) => Kind::Mul,
        (ScalarOp::Sub, 0) => Kind::Sub,
        (ScalarOp::Sub, _) => Kind::SubFrom,
        (ScalarOp::Div, 0) => Kind::Div,
        (ScalarOp::Div, _) => Kind::DivInto,
        (ScalarOp::Max, 0) => Kind::Max,
        (ScalarOp::Min, 0) => Kind::Min,
        (ScalarOp::Neg, _) => Kind::Neg,
        (ScalarOp::Abs, _) => Kind::Abs,
        (ScalarOp::Sqrt, _) => Kind::Sqrt,
        _ => return None,
    })
}

/// The same for a contracted op, whose operands are the two factors and the summand.
pub(super) fn continues_fused(op: Fused, position: usize) -> Kind {
    match (op, position) {
        (Fused::MulAdd, 2) => Kind::AddMul,
        (Fused::MulSub, 2) => Kind::MulSubThis,
        (Fused::SubMul, 2) => Kind::SubMul,
        (Fused::MulAdd, _) => Kind::MulAdd,
        (Fused::MulSub, _) => Kind::MulSub,
        (Fused::SubMul, _) => Kind::NegMulAdd,
    }
}

/// The function that runs chains of this dtype, where the instruction set has one.
pub(super) fn function(dtype: DType, isa: Isa) -> Option<ChainFn> {
    #[cfg(target_arch = "x86_64")]
    return match (dtype, isa) {
        (DType::F32, Isa::Avx512) => Some(registers::f32_avx512),
        (DType::F32, Isa::Avx2) => Some(registers::f32_avx2),
        (DType::F64, Isa::Avx512) => Some(registers::f64_avx512),
        (DType::F64, Isa::Avx2) => Some(registers::f64_avx2),
        _ => None,
    };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (dtype, isa);
        None
    }
}
