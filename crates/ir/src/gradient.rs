//! What reverse mode wants of an op: whether it has a gradient, and the equations of it.

use crate::fault::{Fault, Origin};
use crate::func::{FuncBuilder, Params, Value};

/// Whether an op has a gradient; where it has none, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gradient {
    /// [`crate::Primitive::vjp`] writes it.
    Rule,
    /// Zero wherever it is defined: steps, positions, bits. The words say why.
    Zero(&'static str),
    /// There is none, and asking for it is a fault with these words.
    None(&'static str),
    /// The op applies functions that it holds as parameters: reverse mode goes into these.
    Held,
}

/// One equation to go back through: what a rule reads, and the builder it writes equations with.
pub struct Pullback<'a> {
    pub builder: &'a mut FuncBuilder,
    pub inputs: &'a [Value],
    pub outputs: &'a [Value],
    pub params: &'a Params,
    /// The outputs' cotangents, of the outputs' types; `None` is zero.
    pub cotangents: &'a [Option<Value>],
    /// Which inputs' cotangents are asked for; floats only.
    pub needed: &'a [bool],
    /// Where the user wrote the equation.
    pub origin: Option<Origin>,
}

/// The inputs' cotangents, of the inputs' types; `None` is zero or was not asked for.
pub type Cotangents = Result<Vec<Option<Value>>, Fault>;
