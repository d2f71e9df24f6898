//! Ops that place elements.

use crate::array::Array;
use crate::eager::apply;
use crate::operand::Input;
use vramlab_ir::{Fault, Param, Params, Shape};

pub(crate) fn broadcast(x: Input, shape: &Shape) -> Result<Array, Fault> {
    let params = Params::new().with("shape", Param::Shape(shape.clone()));
    apply("broadcast", &vramlab_ops::BROADCAST, params, &[x], &[x.dtype()])
}
