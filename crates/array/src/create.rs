//! Arrays from nothing: fills, ranges, literals.

use crate::array::{Array, upload};
use crate::eager::{apply, program};
use crate::elementwise::{binary, convert};
use crate::operand::{Input, Number, Operand};
use crate::shape_arguments::shape;
use crate::{layout, trace};
use vramlab_ir::{DType, Fault, FaultKind, Literal, Param, Params, Shape, Type};

/// One value everywhere. Outside a trace the value is an argument, so that one program fills with
/// any value.
pub(crate) fn filled(
    name: &'static str,
    dtype: DType,
    extents: &[i64],
    value: Number,
) -> Result<Array, Fault> {
    fill_shape(name, shape(name, extents)?, value.literal(dtype))
}

pub(crate) fn fill_shape(name: &'static str, shape: Shape, value: Literal) -> Result<Array, Fault> {
    if trace::active() {
        let params =
            Params::new().with("value", Param::Literal(value)).with("shape", Param::Shape(shape));
        return apply(name, &vramlab_ops::FULL, params, &[], &[]);
    }
    if shape.rank() == 0 {
        let bytes = value.to_bytes();
        return upload(Type::new(value.dtype(), shape), &bytes[..value.dtype().size()]);
    }
    let params = Params::new().with("shape", Param::Shape(shape.clone()));
    program(name, params, &[value], |scalars| layout::broadcast(Input::Array(&scalars[0]), &shape))
}

/// The operand as an array: a number becomes a scalar.
pub(crate) fn array_of(input: Input) -> Result<Array, Fault> {
    match input {
        Input::Array(array) => Ok(array.alias()),
        Input::Number(number) => {
            fill_shape("full", Shape::scalar(), number.literal(number.dtype()))
        }
    }
}

pub(crate) fn zeros(extents: &[i64]) -> Result<Array, Fault> {
    filled("zeros", DType::F32, extents, Number::Int(0))
}

pub(crate) fn zeros_as(dtype: DType, extents: &[i64]) -> Result<Array, Fault> {
    filled("zeros", dtype, extents, Number::Int(0))
}

pub(crate) fn ones(extents: &[i64]) -> Result<Array, Fault> {
    filled("ones", DType::F32, extents, Number::Int(1))
}

pub(crate) fn ones_as(dtype: DType, extents: &[i64]) -> Result<Array, Fault> {
    filled("ones", dtype, extents, Number::Int(1))
}

pub(crate) fn full(extents: &[i64], value: Number) -> Result<Array, Fault> {
    filled("full", DType::F32, extents, value)
}

pub(crate) fn full_as(dtype: DType, extents: &[i64], value: Number) -> Result<Array, Fault> {
    filled("full", dtype, extents, value)
}

/// Each element's coordinate along `axis`.
pub(crate) fn iota(
    name: &'static str,
    dtype: DType,
    shape: Shape,
    axis: i64,
) -> Result<Array, Fault> {
    let params = Params::new()
        .with("dtype", Param::DType(dtype))
        .with("shape", Param::Shape(shape))
        .with("axis", Param::Int(axis));
    apply(name, &vramlab_ops::IOTA, params, &[], &[])
}

pub(crate) fn iota_as(dtype: DType, extents: &[i64], axis: i64) -> Result<Array, Fault> {
    let shape = shape("iota", extents)?;
    let axis = vramlab_ops::axis("iota", &Type::new(dtype, shape.clone()), axis)?;
    iota("iota", dtype, shape, axis)
}

/// What `arange` counts through: `n` (from 0), `a..b` or `a..=b` of `i32`, or `a..b` of `f64`.
pub trait Interval {
    /// Start, end (exclusive).
    fn bounds(&self) -> (f64, f64);
}

impl Interval for i32 {
    fn bounds(&self) -> (f64, f64) {
        (0.0, *self as f64)
    }
}

impl Interval for usize {
    fn bounds(&self) -> (f64, f64) {
        (0.0, *self as f64)
    }
}

impl Interval for std::ops::Range<i32> {
    fn bounds(&self) -> (f64, f64) {
        (self.start as f64, self.end as f64)
    }
}

impl Interval for std::ops::RangeInclusive<i32> {
    fn bounds(&self) -> (f64, f64) {
        (*self.start() as f64, *self.end() as f64 + 1.0)
    }
}

impl Interval for std::ops::Range<usize> {
    fn bounds(&self) -> (f64, f64) {
        (self.start as f64, self.end as f64)
    }
}

pub(crate) fn arange(bounds: (f64, f64)) -> Result<Array, Fault> {
    counted("arange", DType::F32, bounds, 1.0)
}

pub(crate) fn arange_as(dtype: DType, bounds: (f64, f64)) -> Result<Array, Fault> {
    counted("arange", dtype, bounds, 1.0)
}

pub(crate) fn arange_step(start: f64, stop: f64, step: f64) -> Result<Array, Fault> {
    counted("arange_step", DType::F32, (start, stop), step)
}

/// start, start + step, … before stop.
fn counted(
    name: &'static str,
    dtype: DType,
    (start, stop): (f64, f64),
    step: f64,
) -> Result<Array, Fault> {
    let count = ((stop - start) / step).ceil();
    if !count.is_finite() || step == 0.0 {
        let message = format!("{start} to {stop} by {step} has no end");
        return Err(Fault::new(FaultKind::Argument, name, message));
    }
    spaced(name, dtype, start, step, count.max(0.0) as i64)
}

pub(crate) fn linspace(start: f64, stop: f64, count: i64) -> Result<Array, Fault> {
    let step = if count > 1 { (stop - start) / (count - 1) as f64 } else { 0.0 };
    spaced("linspace", DType::F32, start, step, count)
}

/// start + step · i, computed in `f64` and rounded once.
fn spaced(
    name: &'static str,
    dtype: DType,
    start: f64,
    step: f64,
    count: i64,
) -> Result<Array, Fault> {
    let shape = shape(name, &[count])?;
    let params =
        Params::new().with("dtype", Param::DType(dtype)).with("shape", Param::Shape(shape.clone()));
    let scalars = [start, step].map(|value| Literal::from_f64(DType::F64, value));
    program(name, params, &scalars, |scalars| {
        let index = iota(name, DType::F64, shape, 0)?;
        let scaled = binary(&vramlab_ops::MUL, index.input(), scalars[1].input())?;
        let value = binary(&vramlab_ops::ADD, scaled.input(), scalars[0].input())?;
        convert(value.input(), dtype)
    })
}

pub(crate) fn eye(n: i64) -> Result<Array, Fault> {
    eye_as(DType::F32, n)
}

pub(crate) fn eye_as(dtype: DType, n: i64) -> Result<Array, Fault> {
    let column = shape("eye", &[n, 1])?;
    let row = shape("eye", &[1, n])?;
    let params = Params::new()
        .with("dtype", Param::DType(dtype))
        .with("shape", Param::Shape(shape("eye", &[n, n])?));
    program("eye", params, &[], |_| {
        let rows = iota("eye", DType::I32, column, 0)?;
        let columns = iota("eye", DType::I32, row, 1)?;
        let equal = binary(&vramlab_ops::EQ, rows.input(), columns.input())?;
        convert(equal.input(), dtype)
    })
}

pub(crate) fn zeros_like(x: Input) -> Result<Array, Fault> {
    like("zeros_like", x, Number::Int(0))
}

pub(crate) fn ones_like(x: Input) -> Result<Array, Fault> {
    like("ones_like", x, Number::Int(1))
}

pub(crate) fn full_like(x: Input, value: Number) -> Result<Array, Fault> {
    like("full_like", x, value)
}

fn like(name: &'static str, x: Input, value: Number) -> Result<Array, Fault> {
    let x = array_of(x)?;
    fill_shape(name, x.ty().shape.clone(), value.literal(x.dtype()))
}
