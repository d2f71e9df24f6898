//! `ops`: the op table.
//!
//! Place in the flow: `array` looks an op up here and derives its methods and free functions from the
//! `with_*` macros; `ir`'s parser resolves names with [`lookup`]; `compiler` sees only what an op
//! lowers to. What comes in: operand types and parameters. What goes out: result types or a fault,
//! and one of the closed loop classes of [`vramlab_ir::Lowering`].
//!
//! One [`Entry`] holds everything about an op: name, words, a cell that runs, operands, parameters,
//! shape and dtype rule, lowering, gradient, batch rule. No field has a default, so an op that lacks one does not compile.
//! To add an op, add its entry to the file of its family, and to nothing else.
//!
//! Absent on purpose: arrays, promotion and weak literals (`array` converts operands before it asks),
//! composites such as softmax (plain functions of `array`), devices, passes.
//!
//! | family | file | macro for `array` |
//! |---|---|---|
//! | `neg` … `isinf` | `elementwise.rs` | [`with_unary`] |
//! | `add` `sub` `mul` `div` `rem` | `elementwise.rs` | [`with_arithmetic`] |
//! | `pow` `atan2` `maximum` `minimum` | `elementwise.rs` | [`with_binary`] |
//! | `bitwise_*` `logical_*` `shift_*` | `elementwise.rs` | [`with_bitwise`] |
//! | `eq` … `ge` | `elementwise.rs` | [`with_comparison`] |
//! | `sum` … `argmin` | `reduce.rs` | [`with_reduce`] |
//! | `select` `convert` `identity` `call` | `special.rs` | – |
//! | `stop_gradient` `checkpoint_name` `barrier` `checkpoint` `custom_vjp` | `differentiation.rs` | – |
//! | `full` `iota` `random_bits` | `create.rs` | – |
//! | `reshape` `transpose` `broadcast` `slice` `flip` `concatenate` `pad` | `layout.rs` | – |
//! | `gather` `scatter_add` `dynamic_slice` `dynamic_update_slice` | `index.rs` | – |
//! | `cumsum` `cumprod` `cummax` `cummin` | `cumulative.rs` | – |
//! | `scan` `while` `cond` | `control.rs` | – |
//! | `dot` | `dot.rs` | – |
//! | `conv` | `conv.rs` | – |
//!
//! Each macro is called as `vramlab_ops::with_unary! { callback }` (with further tokens if need be:
//! `with_unary! { callback, extra }`) and expands to one call of the caller's macro:
//!
//! ```text
//! callback! { [extra]
//!     tanh TANH "Hyperbolic tangent." "tanh(linspace(-1.0, 1.0, 5))";
//!     …
//! }
//! ```
//!
//! so that `macro_rules! callback { ([] $($name:ident $entry:ident $doc:literal $example:literal;)*) => … }`
//! gets per op: the name of method and function, its entry (`vramlab_ops::$entry`), its words and a
//! cell that runs. Ops whose parameters differ are written by hand in `array`, which takes words and
//! example from [`entry`].

mod application;
mod batch;
mod control;
mod conv;
mod create;
mod cumulative;
mod differentiation;
mod domain;
mod dot;
mod elementwise;
mod entry;
mod index;
mod layout;
mod reduce;
mod rule;
mod special;

pub use application::{axes, axis};
pub use batch::{Batch, Examples};
pub use control::{COND, SCAN, WHILE};
pub use conv::CONV;
pub use create::{FULL, IOTA, RANDOM_BITS};
pub use cumulative::{CUMMAX, CUMMIN, CUMPROD, CUMSUM};
pub use differentiation::{
    BARRIER, CHECKPOINT, CHECKPOINT_NAME, CUSTOM_VJP, DEVICE_PUT, STOP_GRADIENT,
};
pub use domain::Domain;
pub use dot::DOT;
pub use elementwise::*;
pub use entry::{Entry, Format, Meaning, Operands, ParamSpec};
pub use index::{DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, GATHER, SCATTER_ADD};
pub use layout::{BROADCAST, CONCATENATE, FLIP, PAD, RESHAPE, SLICE, TRANSPOSE};
pub use reduce::*;
pub use rule::{Derivative, Rule, Term};
pub use special::{CALL, CALL_KINDS, CONVERT, IDENTITY, SELECT};

use std::collections::HashMap;
use std::sync::LazyLock;
use vramlab_ir::Op;

static FAMILIES: &[&[&Entry]] = &[
    elementwise::UNARY,
    elementwise::ARITHMETIC,
    elementwise::BINARY,
    elementwise::BITWISE,
    elementwise::COMPARISON,
    reduce::REDUCTIONS,
    special::SPECIAL,
    differentiation::DIFFERENTIATION,
    create::CREATION,
    layout::LAYOUT,
    index::INDEXING,
    cumulative::CUMULATIVE,
    control::CONTROL,
    dot::CONTRACTION,
    conv::CONVOLUTION,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Entry>> =
    LazyLock::new(|| entries().map(|entry| (entry.name, entry)).collect());

/// Every op, family by family.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.iter().flat_map(|family| family.iter().copied())
}

/// The whole entry of an op: words, example, parameters.
pub fn entry(name: &str) -> Option<&'static Entry> {
    BY_NAME.get(name).copied()
}

/// The op of that name, as programs refer to it: the registry of the text form.
pub fn lookup(name: &str) -> Option<Op> {
    entry(name).map(|entry| entry as Op)
}
