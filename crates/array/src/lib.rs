//! `array`: what cells import.
//!
//! Place in the flow: a cell (compiled by rustc, or interpreted by `cells`) calls these functions;
//! outside a trace each op becomes a one-op `Func` that the ambient [`vramlab_ir::Engine`] runs at
//! once, inside `jit` it becomes an equation. What goes out: calls of `Engine`, nothing else.
//! Absent on purpose: devices, allocators, text of cells. No dependency from a registry.

pub mod surface;

pub use vramlab_ir as ir;

/// An array on the device, or a value of a running trace.
#[derive(Clone, Debug)]
pub struct Array {}
