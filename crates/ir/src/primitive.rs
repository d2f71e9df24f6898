//! The contract of one op. `ops` implements it once per entry of its table; nothing else does.

use crate::batching::{Batched, Batching};
use crate::fault::Fault;
use crate::func::{Params, Type};
use crate::gradient::{Cotangents, Gradient, Pullback};
use crate::lowering::Lowering;
use std::fmt;

/// An entry of the op table, referred to by address: two ops are equal when their names are.
pub type Op = &'static dyn Primitive;

/// Everything the lower layers need to know of an op. No method has a default: a rule that could
/// be forgotten does not compile.
pub trait Primitive: Send + Sync {
    /// The name in the text form: `tanh`.
    fn name(&self) -> &'static str;

    /// The shape and dtype rule: result types from operand types. The fault names the op and the
    /// operands' types. Elementwise ops broadcast as NumPy does and want equal dtypes.
    fn infer(&self, inputs: &[Type], params: &Params) -> Result<Vec<Type>, Fault>;

    /// The meaning, as one of a closed set of loop classes. Called only on inputs that `infer` took.
    fn lower(&self, inputs: &[Type], params: &Params) -> Lowering;

    /// Whether reverse mode can go through the op.
    fn gradient(&self) -> Gradient;

    /// Writes the inputs' cotangents from the outputs'. Called only where [`Primitive::gradient`]
    /// is `Rule` and an output has a cotangent; linear in the cotangents.
    ///
    /// # Errors
    /// A fault that names the op where these inputs or parameters have no gradient.
    fn vjp(&self, pullback: Pullback) -> Cotangents;

    /// Writes the op for a whole batch at once. Called only where an input has the batch's axis, and
    /// not for ops that hold functions ([`Gradient::Held`]): transforms go into these.
    ///
    /// # Errors
    /// A fault that names the op where the batch's shapes are more than can be addressed.
    fn batch(&'static self, batching: Batching) -> Batched;
}

impl PartialEq for dyn Primitive {
    fn eq(&self, other: &dyn Primitive) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Primitive {}

impl fmt::Debug for dyn Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
