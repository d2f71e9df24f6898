//! Arrays from nothing: fills, ranges, literals.

use crate::array::{Array, upload};
use crate::eager::{apply, program};
use crate::operand::{Input, Number};
use crate::shape_arguments::shape;
use crate::{layout, trace};
use vramlab_ir::{DType, Fault, Literal, Param, Params, Shape, Type};

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
