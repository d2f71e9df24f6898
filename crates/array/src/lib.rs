//! `array`: what cells import.
//!
//! Place in the flow: a cell (compiled by rustc, or interpreted by `cells`) calls these functions;
//! outside a trace each op becomes a one-op `Func` that the ambient [`vramlab_ir::Engine`] runs at
//! once, inside `jit` it becomes an equation. What goes out: calls of `Engine`, nothing else.
//!
//! Every name has one core function that returns `Result<_, Fault>`. The typed method and function
//! (which panic with the fault) and the dynamic entry of the [`surface`] table are made from one
//! declaration over that core; see `declare.rs`.
//!
//! Absent on purpose: devices, allocators, text of cells. No dependency from a registry.

mod ambient;
mod array;
mod array_surface;
mod bytes;
mod collections;
mod composite;
mod contract;
mod control;
mod control_flow;
mod control_items;
mod create;
mod creation;
mod declare;
mod decode;
mod device;
mod differentiate;
mod display;
mod eager;
mod element;
mod elementwise;
mod elementwise_surface;
mod gradient;
mod gradient_items;
mod host;
mod inspect;
mod jit;
mod layout;
mod leaner;
mod operand;
mod operators;
mod prelude_items;
mod raise;
mod random;
mod reduce;
mod reduce_surface;
mod shape_arguments;
mod structure;
pub mod surface;
mod tape;
mod trace;
mod training;
mod training_items;
mod tree;
mod tree_functions;
mod tree_items;
mod tree_jit;

pub use ambient::{engine, origin, set_engine, set_origin, with_engine};
pub use array::Array;
pub use host::{Host, with_host};
pub use jit::{Arg, JitCore};
pub use prelude_items::DynJit;
pub use raise::{catch, raise};
pub use random::keeping_draws;
pub use structure::{FieldsOf, StructNames, Structure};
pub use vramlab_ir as ir;

/// Everything a cell can name.
pub mod prelude {
    pub use crate::array::Array;
    pub use crate::array_surface::composites::free::*;
    pub use crate::array_surface::joins::*;
    pub use crate::array_surface::layout::free::*;
    pub use crate::array_surface::products::free::*;
    pub use crate::collections::{Arrays, Starts};
    pub use crate::control_flow::{cond, fori_loop, scan, scan_reverse, while_loop};
    pub use crate::create::Interval;
    pub use crate::creation::*;
    pub use crate::device::{
        MemoryStats, block_until_ready, clear_caches, live_arrays, memory_stats, reset_peak, scope,
        seed,
    };
    pub use crate::element::{Element, Nested};
    pub use crate::elementwise_surface::arithmetic::free::*;
    pub use crate::elementwise_surface::bits::free::*;
    pub use crate::elementwise_surface::comparison::free::*;
    pub use crate::elementwise_surface::one::free::*;
    pub use crate::elementwise_surface::others::free::*;
    pub use crate::elementwise_surface::two::free::*;
    pub use crate::gradient::{
        Transformed, checkpoint, checkpoint_name, checkpoint_segments, checkpoint_with, custom_vjp,
        dots_saveable, dots_with_no_batch_dims_saveable, everything_saveable, grad, grad_wrt,
        hessian, jacfwd, jacobian, jacrev, jvp, nothing_saveable, offload_dot_with_no_batch_dims,
        remat, residuals, save_and_offload_only_these_names, save_any_names_but_these,
        save_anything_except_these_names, save_only_these_names, stop_gradient, value_and_grad,
        value_and_grad_aux, value_and_grad_aux_wrt, value_and_grad_wrt, vjp, vmap, vmap_wrt,
    };
    pub use crate::host::{display, input, sleep};
    pub use crate::inspect::{allclose, array, array_as, from_vec, split};
    pub use crate::jit::{Arguments, Jit, jit};
    pub use crate::operand::{Number, Operand};
    pub use crate::reduce_surface::all_forms::free::*;
    pub use crate::reduce_surface::any_forms::free::*;
    pub use crate::reduce_surface::logsumexp_forms::free::*;
    pub use crate::reduce_surface::max_forms::free::*;
    pub use crate::reduce_surface::mean_forms::free::*;
    pub use crate::reduce_surface::min_forms::free::*;
    pub use crate::reduce_surface::norm_forms::free::*;
    pub use crate::reduce_surface::positions::free::*;
    pub use crate::reduce_surface::prod_forms::free::*;
    pub use crate::reduce_surface::std_forms::free::*;
    pub use crate::reduce_surface::sum_forms::free::*;
    pub use crate::reduce_surface::var_forms::free::*;
    pub use crate::shape_arguments::{Axes, AxisIndex, Extent, Indices, IntoShape, Padding};
    pub use crate::training::{adam, adam_init, adamw, cross_entropy, progress, sgd};
    pub use crate::tree;
    pub use crate::tree::Tree;
    pub use crate::tree_functions::{
        TreeFunction, checkpoint_tree, checkpoint_tree_with, grad_tree, jvp_tree, residuals_tree,
        value_and_grad_tree, vjp_tree, vmap_tree, vmap_tree_wrt,
    };
    pub use crate::tree_jit::{JitTree, JitUpdate, jit_tree, jit_update};
    pub use vramlab_ir::{DType, MemoryAnalysis};
    pub use vramlab_transform::Policy;
}
