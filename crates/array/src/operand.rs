//! What may stand where an op wants an array: arrays, references to them and weak numbers.

use crate::array::Array;
use vramlab_ir::{DType, Literal};

/// A number of a cell. It is weak: it takes the other operand's element type where that can hold
/// its kind, so `x * 2.0` keeps `x`'s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Number {
    /// The element type that this number has alone.
    pub fn dtype(self) -> DType {
        match self {
            Number::Int(_) => DType::I32,
            Number::Float(_) => DType::F32,
            Number::Bool(_) => DType::Bool,
        }
    }

    /// The element type of an op between an array of `dtype` and this number.
    pub fn beside(self, dtype: DType) -> DType {
        match self {
            Number::Float(_) if !dtype.is_float() => DType::F32,
            Number::Int(_) if dtype == DType::Bool => DType::I32,
            _ => dtype,
        }
    }

    pub fn literal(self, dtype: DType) -> Literal {
        match self {
            Number::Int(value) => Literal::from_i64(dtype, value),
            Number::Float(value) => Literal::from_f64(dtype, value),
            Number::Bool(value) => Literal::from_i64(dtype, value as i64),
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
            Number::Bool(value) => value as u8 as f64,
        }
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number::Float(value)
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Number {
        Number::Int(value as i64)
    }
}

impl From<bool> for Number {
    fn from(value: bool) -> Number {
        Number::Bool(value)
    }
}

/// An operand by reference.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    Array(&'a Array),
    Number(Number),
}

impl Input<'_> {
    /// The element type, weak numbers with the one they have alone.
    pub fn dtype(&self) -> DType {
        match self {
            Input::Array(array) => array.ty().dtype,
            Input::Number(number) => number.dtype(),
        }
    }
}

/// The element type that operands of one op meet in; numbers give way to arrays.
pub(crate) fn common(inputs: &[Input]) -> DType {
    let arrays = inputs.iter().filter_map(|input| match input {
        Input::Array(array) => Some(array.ty().dtype),
        Input::Number(_) => None,
    });
    let numbers = inputs.iter().filter_map(|input| match input {
        Input::Number(number) => Some(*number),
        Input::Array(_) => None,
    });
    match arrays.reduce(DType::promote) {
        Some(dtype) => numbers.fold(dtype, |dtype, number| number.beside(dtype)),
        None => numbers.map(Number::dtype).reduce(DType::promote).unwrap_or(DType::F32),
    }
}

/// `Array`, `&Array`, `f64` and `i32`. By value an array is consumed: freed when the op is done.
pub trait Operand {
    fn input(&self) -> Input<'_>;
}

impl Operand for Array {
    fn input(&self) -> Input<'_> {
        Input::Array(self)
    }
}

impl Operand for &Array {
    fn input(&self) -> Input<'_> {
        Input::Array(self)
    }
}

impl Operand for f64 {
    fn input(&self) -> Input<'_> {
        Input::Number(Number::Float(*self))
    }
}

impl Operand for i32 {
    fn input(&self) -> Input<'_> {
        Input::Number(Number::Int(*self as i64))
    }
}
