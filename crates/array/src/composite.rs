//! Composites: plain functions over arrays. Under `jit` they fuse; eager they run op by op.

use crate::array::Array;
use crate::create::{array_of, iota};
use crate::elementwise::{binary, convert, select, unary};
use crate::layout;
use crate::operand::{Input, Number, Operand};
use crate::reduce::{ascending, floats, mean, reduce};
use crate::shape_arguments::{Index, shape};
use vramlab_ir::{DType, Fault, FaultKind};
use vramlab_ops::{
    ABS, ADD, ALL, DIV, EQ, ERF, EXP, GE, LE, LOG, LOG1P, LOGICAL_OR, MAX, MAXIMUM, MUL, NEG,
    RSQRT, SQUARE, SUB, SUM, TANH,
};

fn number(value: f64) -> Input<'static> {
    Input::Number(Number::Float(value))
}

pub(crate) fn softmax(x: Input, axis: i64) -> Result<Array, Fault> {
    let x = floats(x)?;
    let axes = ascending("softmax", &x, Some(&[axis]))?;
    let largest = shift(reduce(&MAX, x.input(), Some(&axes), true)?)?;
    let shifted = binary(&SUB, x.input(), largest.input())?;
    let powers = unary(&EXP, shifted.input())?;
    drop(shifted);
    let total = reduce(&SUM, powers.input(), Some(&axes), true)?;
    binary(&DIV, powers.input(), total.input())
}

pub(crate) fn log_softmax(x: Input, axis: i64) -> Result<Array, Fault> {
    let x = floats(x)?;
    let axes = ascending("log_softmax", &x, Some(&[axis]))?;
    let largest = shift(reduce(&MAX, x.input(), Some(&axes), true)?)?;
    let shifted = binary(&SUB, x.input(), largest.input())?;
    let powers = unary(&EXP, shifted.input())?;
    let total = reduce(&SUM, powers.input(), Some(&axes), true)?;
    drop(powers);
    let log = unary(&LOG, total.input())?;
    binary(&SUB, shifted.input(), log.input())
}

/// Through tanh, which saturates where exp would overflow.
pub(crate) fn sigmoid(x: Input) -> Result<Array, Fault> {
    let x = floats(x)?;
    let half = binary(&MUL, x.input(), number(0.5))?;
    let t = unary(&TANH, half.input())?;
    let scaled = binary(&MUL, t.input(), number(0.5))?;
    binary(&ADD, scaled.input(), number(0.5))
}

/// Inside a trace it is a choice, whose gradient at 0 is 0, as JAX has it, and keeps one byte an
/// element; eager one kernel of the same values.
pub(crate) fn relu(x: Input) -> Result<Array, Fault> {
    let zero = || Input::Number(Number::Int(0));
    if !crate::trace::active() {
        return binary(&MAXIMUM, x, zero());
    }
    let below = binary(&LE, x, zero())?;
    select(below.input(), zero(), x)
}

/// A shift that the value does not depend on: gradients need not go through it.
pub(crate) fn shift(x: Array) -> Result<Array, Fault> {
    match crate::trace::active() {
        true => crate::differentiate::stop_gradient(x.input()),
        false => Ok(x),
    }
}

/// x · Φ(x) with the tanh approximation of Φ, as JAX's default.
pub(crate) fn gelu(x: Input) -> Result<Array, Fault> {
    let x = floats(x)?;
    let square = unary(&SQUARE, x.input())?;
    let cubic = binary(&ADD, binary(&MUL, square.input(), number(0.044715))?.input(), number(1.0))?;
    let inner = binary(&MUL, x.input(), cubic.input())?;
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let t = unary(&TANH, binary(&MUL, inner.input(), number(root))?.input())?;
    let raised = binary(&ADD, t.input(), number(1.0))?;
    let half = binary(&MUL, x.input(), number(0.5))?;
    binary(&MUL, half.input(), raised.input())
}

/// x · Φ(x) with the error function.
pub(crate) fn gelu_exact(x: Input) -> Result<Array, Fault> {
    let x = floats(x)?;
    let scaled = binary(&MUL, x.input(), number(std::f64::consts::FRAC_1_SQRT_2))?;
    let raised = binary(&ADD, unary(&ERF, scaled.input())?.input(), number(1.0))?;
    let half = binary(&MUL, x.input(), number(0.5))?;
    binary(&MUL, half.input(), raised.input())
}

pub(crate) fn silu(x: Input) -> Result<Array, Fault> {
    let x = floats(x)?;
    let gate = sigmoid(x.input())?;
    binary(&MUL, x.input(), gate.input())
}

/// log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|)).
pub(crate) fn softplus(x: Input) -> Result<Array, Fault> {
    let x = floats(x)?;
    let size = unary(&ABS, x.input())?;
    let small = unary(&EXP, unary(&NEG, size.input())?.input())?;
    let log = unary(&LOG1P, small.input())?;
    let raised = relu(x.input())?;
    binary(&ADD, raised.input(), log.input())
}

/// The spread that keeps the division finite where all elements are equal, as in JAX and PyTorch.
const LAYER_NORM_EPSILON: f64 = 1e-5;

pub(crate) fn layer_norm(x: Input, axis: i64) -> Result<Array, Fault> {
    let x = floats(x)?;
    let axes = ascending("layer_norm", &x, Some(&[axis]))?;
    let centre = mean(x.input(), Some(&axes), true)?;
    let distance = binary(&SUB, x.input(), centre.input())?;
    let square = unary(&SQUARE, distance.input())?;
    let spread = mean(square.input(), Some(&axes), true)?;
    drop(square);
    let scale = unary(&RSQRT, binary(&ADD, spread.input(), number(LAYER_NORM_EPSILON))?.input())?;
    binary(&MUL, distance.input(), scale.input())
}

/// 1 where the class is the element's, 0 elsewhere, along a new last axis.
pub(crate) fn one_hot(x: Input, classes: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    if !x.dtype().is_integer() {
        let message = format!("classes are integers, not {}", x.dtype());
        let help = "arange_as(I32, n), array([0, 1]) and x.convert(I32) make integers";
        return Err(Fault::new(FaultKind::DType, "one_hot", message).help(help));
    }
    let classes = iota("one_hot", DType::I32, shape("one_hot", &[classes])?, 0)?;
    let column = layout::expand_dims(x.input(), -1)?;
    let equal = binary(&EQ, column.input(), classes.input())?;
    convert(equal.input(), DType::F32)
}

pub(crate) fn tril(x: Input) -> Result<Array, Fault> {
    triangle("tril", x, &GE)
}

pub(crate) fn triu(x: Input) -> Result<Array, Fault> {
    triangle("triu", x, &LE)
}

/// Keeps the elements whose row and column compare as asked.
fn triangle(
    name: &'static str,
    x: Input,
    keep: &'static vramlab_ops::Entry,
) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let rank = x.rank();
    if rank < 2 {
        let message = format!("{} has no rows and columns", x.ty());
        return Err(Fault::new(FaultKind::Shape, name, message));
    }
    let extents: Vec<i64> = x.ty().shape[rank - 2..].iter().map(|&extent| extent as i64).collect();
    let rows = iota(name, DType::I32, shape(name, &[extents[0], 1])?, 0)?;
    let columns = iota(name, DType::I32, shape(name, &[1, extents[1]])?, 1)?;
    let mask = binary(keep, rows.input(), columns.input())?;
    select(mask.input(), x.input(), Input::Number(Number::Int(0)))
}

/// Whether the operands differ nowhere by more than 1e-8 + 1e-5 · |b|.
pub(crate) fn allclose(a: Input, b: Input) -> Result<bool, Fault> {
    let (a, b) = (array_of(a)?, array_of(b)?);
    let distance = unary(&ABS, binary(&SUB, a.input(), b.input())?.input())?;
    let scaled = binary(&MUL, unary(&ABS, b.input())?.input(), number(1e-5))?;
    let allowed = binary(&ADD, scaled.input(), number(1e-8))?;
    let near = binary(&LE, distance.input(), allowed.input())?;
    // Equal infinities have no distance.
    let equal = binary(&EQ, a.input(), b.input())?;
    let fits = binary(&LOGICAL_OR, near.input(), equal.input())?;
    let all = reduce(&ALL, fits.input(), None, false)?;
    Ok(crate::element::item(&all)?.as_i64() != 0)
}

/// The elements moved along an axis; those that leave at one end come in at the other.
pub(crate) fn roll(x: Input, shift: i64, axis: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let axis = vramlab_ops::axis("roll", x.ty(), axis)? as usize;
    let extent = x.ty().shape[axis] as i64;
    if extent == 0 {
        return Ok(x.clone());
    }
    let cut = extent - shift.rem_euclid(extent);
    let part = |start, end| {
        let mut indices = vec![Index::Range { start: None, end: None, inclusive: false }; axis];
        indices.push(Index::Range { start: Some(start), end: Some(end), inclusive: false });
        layout::slice(x.input(), &indices)
    };
    layout::concatenate(&[part(cut, extent)?, part(0, cut)?], axis as i64)
}

/// Copies of the array side by side, so many along each axis; missing counts are 1.
pub(crate) fn tile(x: Input, counts: &[i64]) -> Result<Array, Fault> {
    let x = array_of(x)?;
    shape("tile", counts)?;
    let rank = x.rank().max(counts.len());
    let padded = |values: Vec<i64>| [vec![1; rank - values.len()], values].concat();
    let extents = padded(x.shape().into_iter().map(|extent| extent as i64).collect());
    let counts = padded(counts.to_vec());
    let pairs = |first: &[i64], second: &[i64]| -> Vec<i64> {
        first.iter().zip(second).flat_map(|(&a, &b)| [a, b]).collect()
    };
    let split = layout::reshape(x.input(), &pairs(&vec![1; rank], &extents))?;
    let repeated = layout::broadcast_to(split.input(), &pairs(&counts, &extents))?;
    let joined: Vec<i64> = extents.iter().zip(&counts).map(|(a, b)| a.saturating_mul(*b)).collect();
    layout::reshape(repeated.input(), &joined)
}

/// Each element so many times in a row along an axis.
pub(crate) fn repeat(x: Input, count: i64, axis: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    shape("repeat", &[count])?;
    let axis = vramlab_ops::axis("repeat", x.ty(), axis)? as usize;
    let raised = layout::expand_dims(x.input(), axis as i64 + 1)?;
    let mut extents: Vec<i64> = raised.shape().into_iter().map(|extent| extent as i64).collect();
    extents[axis + 1] = count;
    let repeated = layout::broadcast_to(raised.input(), &extents)?;
    extents.remove(axis + 1);
    extents[axis] = extents[axis].saturating_mul(count);
    layout::reshape(repeated.input(), &extents)
}
