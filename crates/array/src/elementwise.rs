//! Elementwise ops: element types meet, numbers stay weak, shapes broadcast in the op's own rule.

use crate::array::Array;
use crate::eager::apply;
use crate::operand::{Input, common};
use vramlab_ir::{DType, Fault, Param, Params};
use vramlab_ops::{Domain, Entry};

/// The element type that `entry` computes in, when its operands meet in `dtype`. Floats never become
/// integers by themselves: the op refuses them.
fn computed(entry: &Entry, dtype: DType) -> DType {
    match entry.domain().unwrap_or(Domain::Any) {
        Domain::Integer | Domain::Bits if dtype.is_float() => dtype,
        domain => domain.coerce(dtype),
    }
}

pub(crate) fn unary(entry: &'static Entry, x: Input) -> Result<Array, Fault> {
    let dtype = computed(entry, x.dtype());
    apply(entry.name, entry, Params::new(), &[x], &[dtype])
}

pub(crate) fn binary(entry: &'static Entry, a: Input, b: Input) -> Result<Array, Fault> {
    let dtype = computed(entry, common(&[a, b]));
    apply(entry.name, entry, Params::new(), &[a, b], &[dtype, dtype])
}

pub(crate) fn select(condition: Input, a: Input, b: Input) -> Result<Array, Fault> {
    let dtype = common(&[a, b]);
    let dtypes = [DType::Bool, dtype, dtype];
    apply("select", &vramlab_ops::SELECT, Params::new(), &[condition, a, b], &dtypes)
}

pub(crate) fn convert(x: Input, dtype: DType) -> Result<Array, Fault> {
    let params = Params::new().with("dtype", Param::DType(dtype));
    apply("convert", &vramlab_ops::CONVERT, params, &[x], &[x.dtype()])
}

/// A buffer of its own with the same elements.
pub(crate) fn copy(x: Input) -> Result<Array, Fault> {
    apply("copy", &vramlab_ops::IDENTITY, Params::new(), &[x], &[x.dtype()])
}

pub(crate) fn clip(x: Input, low: Input, high: Input) -> Result<Array, Fault> {
    let raised = binary(&vramlab_ops::MAXIMUM, x, low)?;
    binary(&vramlab_ops::MINIMUM, Input::Array(&raised), high)
}
