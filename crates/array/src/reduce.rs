//! Reductions: over every axis, one, or several; with or without the reduced axes.

use crate::array::Array;
use crate::create::array_of;
use crate::eager::apply;
use crate::elementwise::{binary, convert, unary};
use crate::layout;
use crate::operand::{Input, Number, Operand};
use vramlab_ir::{DType, Fault, FaultKind, Param, Params, ReduceKind};
use vramlab_ops::{Domain, Entry, Meaning};

/// The axes to reduce, ascending from the front; `None` means all.
pub(crate) fn ascending(op: &str, x: &Array, axes: Option<&[i64]>) -> Result<Vec<i64>, Fault> {
    match axes {
        Some(axes) => vramlab_ops::axes(op, x.ty(), axes),
        None => Ok((0..x.rank() as i64).collect()),
    }
}

/// The element type that a reduction runs in. Sums of small integers and of bools count in `i32`.
fn reduced_in(entry: &Entry, dtype: DType) -> DType {
    let adds =
        matches!(entry.meaning, Meaning::Reduce { kind: ReduceKind::Sum | ReduceKind::Prod, .. });
    match dtype {
        DType::U8 if adds => DType::I32,
        dtype => entry.domain().unwrap_or(Domain::Any).coerce(dtype),
    }
}

pub(crate) fn reduce(
    entry: &'static Entry,
    x: Input,
    axes: Option<&[i64]>,
    keep: bool,
) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let given = x.dtype();
    let dtype = reduced_in(entry, given);
    let axes = ascending(entry.name, &x, axes)?;
    let params = Params::new().with("axes", Param::Ints(axes)).with("keep", Param::Bool(keep));
    let reduced = apply(entry.name, entry, params, &[x.input()], &[dtype])?;
    // Halves accumulate in f32 and come back as they were.
    match reduced.dtype() == DType::F32 && given.is_float() && given != DType::F32 {
        true => convert(reduced.input(), given),
        false => Ok(reduced),
    }
}

/// A running sum or its like, from the beginning of an axis or from its end.
fn cumulative(entry: &'static Entry, x: Input, axis: i64, reverse: bool) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let given = x.dtype();
    let dtype = match given {
        DType::U8 if entry.name != "cummax" && entry.name != "cummin" => DType::I32,
        dtype => Domain::Accumulator.coerce(dtype),
    };
    let axis = vramlab_ops::axis(entry.name, x.ty(), axis)?;
    let params = Params::new().with("axis", Param::Int(axis)).with("reverse", Param::Bool(reverse));
    let made = apply(entry.name, entry, params, &[x.input()], &[dtype])?;
    // Halves accumulate in f32 and come back as they were.
    match made.dtype() == DType::F32 && given.is_float() && given != DType::F32 {
        true => convert(made.input(), given),
        false => Ok(made),
    }
}

pub(crate) fn cumsum(x: Input, axis: i64) -> Result<Array, Fault> {
    cumulative(&vramlab_ops::CUMSUM, x, axis, false)
}

pub(crate) fn cumsum_reverse(x: Input, axis: i64) -> Result<Array, Fault> {
    cumulative(&vramlab_ops::CUMSUM, x, axis, true)
}

pub(crate) fn cumprod(x: Input, axis: i64) -> Result<Array, Fault> {
    cumulative(&vramlab_ops::CUMPROD, x, axis, false)
}

pub(crate) fn cummax(x: Input, axis: i64) -> Result<Array, Fault> {
    cumulative(&vramlab_ops::CUMMAX, x, axis, false)
}

pub(crate) fn cummin(x: Input, axis: i64) -> Result<Array, Fault> {
    cumulative(&vramlab_ops::CUMMIN, x, axis, false)
}

/// Elements per result.
fn count(op: &str, x: &Array, axes: Option<&[i64]>) -> Result<f64, Fault> {
    let axes = ascending(op, x, axes)?;
    Ok(axes.iter().map(|&axis| x.ty().shape[axis as usize] as f64).product())
}

/// `x` as floats: integers and bools become `f32`.
pub(crate) fn floats(x: Input) -> Result<Array, Fault> {
    let x = array_of(x)?;
    match x.dtype().is_float() {
        true => Ok(x),
        false => convert(x.input(), DType::F32),
    }
}

pub(crate) fn mean(x: Input, axes: Option<&[i64]>, keep: bool) -> Result<Array, Fault> {
    let x = floats(x)?;
    let count = Number::Float(count("mean", &x, axes)?);
    let total = reduce(&vramlab_ops::SUM, x.input(), axes, keep)?;
    binary(&vramlab_ops::DIV, total.input(), Input::Number(count))
}

pub(crate) fn var(x: Input, axes: Option<&[i64]>, keep: bool) -> Result<Array, Fault> {
    let x = floats(x)?;
    ascending("var", &x, axes)?;
    let centre = mean(x.input(), axes, true)?;
    let distance = binary(&vramlab_ops::SUB, x.input(), centre.input())?;
    let square = unary(&vramlab_ops::SQUARE, distance.input())?;
    drop(distance);
    mean(square.input(), axes, keep)
}

pub(crate) fn std(x: Input, axes: Option<&[i64]>, keep: bool) -> Result<Array, Fault> {
    let x = floats(x)?;
    ascending("std", &x, axes)?;
    unary(&vramlab_ops::SQRT, var(x.input(), axes, keep)?.input())
}

/// Position of an extreme element; without an axis in the flattened array.
pub(crate) fn position(
    entry: &'static Entry,
    x: Input,
    axis: Option<i64>,
    keep: bool,
) -> Result<Array, Fault> {
    let x = array_of(x)?;
    match axis {
        Some(axis) => reduce(entry, x.input(), Some(&[axis]), keep),
        None if x.len() == 0 => {
            Err(Fault::new(FaultKind::Shape, entry.name, format!("{} has no elements", x.ty())))
        }
        None => {
            let flat = layout::reshape(x.input(), &[-1])?;
            reduce(entry, flat.input(), Some(&[0]), false)
        }
    }
}

/// The Euclidean length.
pub(crate) fn norm(x: Input, axes: Option<&[i64]>, keep: bool) -> Result<Array, Fault> {
    let x = floats(x)?;
    ascending("norm", &x, axes)?;
    let square = unary(&vramlab_ops::SQUARE, x.input())?;
    let total = reduce(&vramlab_ops::SUM, square.input(), axes, keep)?;
    unary(&vramlab_ops::SQRT, total.input())
}

/// `log(sum(exp(x)))` without overflow; where the largest element is infinite it is the result.
pub(crate) fn logsumexp(x: Input, axes: Option<&[i64]>, keep: bool) -> Result<Array, Fault> {
    let x = floats(x)?;
    ascending("logsumexp", &x, axes)?;
    let largest = reduce(&vramlab_ops::MAX, x.input(), axes, true)?;
    let finite = unary(&vramlab_ops::ISFINITE, largest.input())?;
    let shift =
        crate::elementwise::select(finite.input(), largest.input(), Input::Number(Number::Int(0)))?;
    let shift = crate::composite::shift(shift)?;
    let shifted = binary(&vramlab_ops::SUB, x.input(), shift.input())?;
    let powers = unary(&vramlab_ops::EXP, shifted.input())?;
    drop(shifted);
    let total = reduce(&vramlab_ops::SUM, powers.input(), axes, true)?;
    let log = unary(&vramlab_ops::LOG, total.input())?;
    let kept = binary(&vramlab_ops::ADD, log.input(), shift.input())?;
    match keep {
        true => Ok(kept),
        false => {
            let axes = ascending("logsumexp", &x, axes)?;
            layout::without_axes(&kept, &axes)
        }
    }
}
