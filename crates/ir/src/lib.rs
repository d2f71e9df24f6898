//! `ir`: programs as data.
//!
//! Place in the flow: `ops` defines primitives against the traits here, `array` traces cells into
//! [`Func`]s, `compiler` turns a `Func` into a [`Program`] of kernel images, `device` runs the images,
//! `runtime` implements [`Engine`]. What comes in: nothing. What goes out: the types every other
//! crate agrees on, one text form that prints and parses, a verifier, and the interpreter, whose
//! slow, obvious meaning decides when two back ends differ.
//!
//! Absent on purpose: devices, allocators, IO, clocks, globals, and any list of ops. This crate is
//! std only, so that the prelude of compiled cells builds without a registry.

pub mod batching;
pub mod dtype;
pub mod engine;
pub mod eval;
pub mod fault;
pub mod func;
pub mod gradient;
pub mod half;
pub mod interp;
pub mod kernel;
pub mod lowering;
pub mod primitive;
pub mod scalar;
pub mod shape;
pub mod text;
pub mod verify;

pub use batching::{Batched, Batching};
pub use dtype::{DType, Literal};
pub use engine::{
    Argument, BufferId, CompileKind, CompileRequest, Engine, ExecutableId, Explanation, Leaner,
    MemoryAnalysis, MemoryFigures, ScopeFigures,
};
pub use fault::{Fault, FaultKind, Origin, Span};
pub use func::{Eqn, Func, FuncBuilder, MemorySpace, Param, Params, Stage, Type, Value, arg_name};
pub use gradient::{Cotangents, Gradient, Pullback};
pub use interp::{Tensor, evaluate};
pub use kernel::{Kernel, Program};
pub use lowering::{Lowering, ReduceKind};
pub use primitive::{Op, Primitive};
pub use scalar::{Inst, Reg, ScalarOp, ScalarProgram};
pub use shape::Shape;
pub use text::{ParseError, parse};
pub use verify::{Complaint, verify};
