//! Products: `dot` and `matmul` by NumPy's rules.

use crate::array::Array;
use crate::create::array_of;
use crate::eager::apply;
use crate::elementwise::{binary, convert};
use crate::layout;
use crate::operand::{Input, Operand};
use crate::trace;
use vramlab_ir::{DType, Fault, FaultKind, Param, Params, Shape};
use vramlab_ops::Domain;

/// Which axes of the two operands belong together.
struct Axes {
    lhs_batch: Vec<i64>,
    rhs_batch: Vec<i64>,
    lhs_contract: i64,
    rhs_contract: i64,
}

fn contract(name: &'static str, a: &Array, b: &Array, axes: Axes) -> Result<Array, Fault> {
    let met = a.dtype().promote(b.dtype());
    let dtype = Domain::Accumulator.coerce(met);
    let params = Params::new()
        .with("lhs_batch", Param::Ints(axes.lhs_batch))
        .with("rhs_batch", Param::Ints(axes.rhs_batch))
        .with("lhs_contract", Param::Ints(vec![axes.lhs_contract]))
        .with("rhs_contract", Param::Ints(vec![axes.rhs_contract]));
    let inputs = [a.input(), b.input()];
    let product = apply(name, &vramlab_ops::DOT, params, &inputs, &[dtype, dtype])?;
    // Halves accumulate in f32 and come back as they were.
    match dtype == DType::F32 && met.is_float() && met != DType::F32 {
        true => convert(product.input(), met),
        false => Ok(product),
    }
}

/// Sum of products over the last axis of `a` and the second to last of `b` (the only one of a
/// vector); a scalar multiplies.
pub(crate) fn dot(a: Input, b: Input) -> Result<Array, Fault> {
    let (a, b) = (array_of(a)?, array_of(b)?);
    if a.rank() == 0 || b.rank() == 0 {
        return binary(&vramlab_ops::MUL, a.input(), b.input());
    }
    let axes = Axes {
        lhs_batch: Vec::new(),
        rhs_batch: Vec::new(),
        lhs_contract: a.rank() as i64 - 1,
        rhs_contract: (b.rank() as i64 - 2).max(0),
    };
    contract("dot", &a, &b, axes)
}

/// The matrix product of the last two axes; leading axes are batches, which broadcast. A vector is
/// a row on the left and a column on the right.
pub(crate) fn matmul(a: Input, b: Input) -> Result<Array, Fault> {
    matrices(a, b).map_err(|fault| trace::naming(fault, &[a, b]))
}

fn matrices(a: Input, b: Input) -> Result<Array, Fault> {
    let (a, b) = (array_of(a)?, array_of(b)?);
    if a.rank() == 0 || b.rank() == 0 {
        let message = format!("{} and {}: a scalar is no matrix", a.ty(), b.ty());
        return Err(Fault::new(FaultKind::Shape, "matmul", message).help("use *"));
    }
    if b.rank() <= 2 {
        // No batch on the right: the free axes of `a` stay in front as they are.
        let axes = Axes {
            lhs_batch: Vec::new(),
            rhs_batch: Vec::new(),
            lhs_contract: a.rank() as i64 - 1,
            rhs_contract: (b.rank() as i64 - 2).max(0),
        };
        return contract("matmul", &a, &b, axes);
    }
    let row = a.rank() == 1;
    let a = if row { layout::expand_dims(a.input(), 0)? } else { a };
    let product = batched(&a, &b)?;
    match row {
        true => layout::squeeze_axis(product.input(), -2),
        false => Ok(product),
    }
}

fn batched(a: &Array, b: &Array) -> Result<Array, Fault> {
    let (left, right) = (batch_of(a), batch_of(b));
    let Some(batch) = left.broadcast(&right) else {
        let message = format!("{} and {}: batches {left} and {right} differ", a.ty(), b.ty());
        return Err(Fault::new(FaultKind::Shape, "matmul", message));
    };
    let a = with_batch(a, &batch)?;
    let b = with_batch(b, &batch)?;
    let rank = batch.rank() as i64;
    let axes = Axes {
        lhs_batch: (0..rank).collect(),
        rhs_batch: (0..rank).collect(),
        lhs_contract: rank + 1,
        rhs_contract: rank,
    };
    contract("matmul", &a, &b, axes)
}

fn batch_of(x: &Array) -> Shape {
    Shape::from(&x.ty().shape[..x.rank() - 2])
}

fn with_batch(x: &Array, batch: &Shape) -> Result<Array, Fault> {
    if batch_of(x) == *batch {
        return Ok(x.alias());
    }
    let matrix = &x.ty().shape[x.rank() - 2..];
    layout::broadcast(x.input(), &Shape::new([&batch[..], matrix].concat()))
}

/// Every product of an element of `a` with one of `b`: a matrix.
pub(crate) fn outer(a: Input, b: Input) -> Result<Array, Fault> {
    let column = layout::expand_dims(layout::ravel(a)?.input(), 1)?;
    let row = layout::ravel(b)?;
    binary(&vramlab_ops::MUL, column.input(), row.input())
}

/// `x[n, h, w, c]` under `filters[h, w, c, o]`, moved by `stride`, with `padding` zeros on every side.
pub(crate) fn conv2d(x: Input, filters: Input, stride: i64, padding: i64) -> Result<Array, Fault> {
    let (x, filters) = (array_of(x)?, array_of(filters)?);
    if (x.rank(), filters.rank()) != (4, 4) {
        let message = format!("{} and {}: both have four axes", x.ty(), filters.ty());
        let help =
            "x is [examples, height, width, channels], filters [height, width, channels, results]";
        let fault = Fault::new(FaultKind::Shape, "conv2d", message).help(help);
        return Err(trace::naming(fault, &[x.input(), filters.input()]));
    }
    let both = |value: i64| Param::Ints(vec![value, value]);
    let params = Params::new()
        .with("stride", both(stride))
        .with("low", both(padding))
        .with("high", both(padding))
        .with("x_dilation", both(1))
        .with("w_dilation", both(1));
    let met = x.dtype().promote(filters.dtype());
    let dtype = Domain::Accumulator.coerce(met);
    let inputs = [x.input(), filters.input()];
    let result = apply("conv2d", &vramlab_ops::CONV, params, &inputs, &[dtype, dtype])?;
    match dtype == DType::F32 && met.is_float() && met != DType::F32 {
        true => convert(result.input(), met),
        false => Ok(result),
    }
}
