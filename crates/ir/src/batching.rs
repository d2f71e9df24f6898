//! What batching wants of an op: the same op over one more leading axis.

use crate::fault::{Fault, Origin};
use crate::func::{FuncBuilder, Params, Value};

/// One equation to write for a whole batch: what a rule reads, and the builder it writes
/// equations with.
pub struct Batching<'a> {
    pub builder: &'a mut FuncBuilder,
    pub inputs: &'a [Value],
    pub params: &'a Params,
    /// Which inputs have a leading axis of one entry an example; the others are the same for all.
    pub batched: &'a [bool],
    /// Examples.
    pub size: usize,
    /// Where the user wrote the equation.
    pub origin: Option<Origin>,
}

/// The outputs, each with a leading axis of the batch.
pub type Batched = Result<Vec<Value>, Fault>;
