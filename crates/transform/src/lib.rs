//! `transform`: programs to programs.
//!
//! Place in the flow: `array` traces a function to a [`vramlab_ir::Func`] and hands it in; the
//! program of its gradient comes out, which `array` inlines in the trace that runs or, in eager
//! mode, runs equation by equation. So no equation for a gradient exists, transforms nest by
//! themselves, and `compiler` needs no autodiff.
//!
//! [`Joint`] is the middle: one program of forward, recomputation and backward, in that order, with
//! a mark on each equation that says which of the three it belongs to and whose gradient wanted it.
//! Everything else is read off it: the gradient's program, the two halves of a `vjp`, what is kept
//! from the one for the other ([`Residual`]) and why.
//!
//! [`jvp`] goes forward only: tangents beside values, loops and branches included.
//!
//! [`vmap`] is the third transform: the same program over one more leading axis.
//!
//! Absent on purpose: rules of ops (they stand in the op table), arrays, devices, the order and
//! places of buffers.

mod activity;
mod batch;
mod condition;
mod fault;
mod forward;
mod gradient;
mod jacobian;
mod joint;
mod loops;
mod offload;
mod policy;
mod residual;
mod reverse;
mod split;
mod spread;
mod writer;

pub use batch::vmap;
pub use forward::jvp;
pub use gradient::{value_and_grad, vjp};
pub use jacobian::{jacfwd, jacobian};
pub use joint::{Exchange, Joint, Mark};
pub use policy::{POLICIES, Policy, names};
pub use residual::{Residual, residual_table, residuals};
pub use reverse::inline;
pub use split::Split;
pub use vramlab_ir::Stage;
