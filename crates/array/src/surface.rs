//! The surface table: every name a cell may use, once, with its Rust signature as text, its words
//! and a dynamic entry point. The typed functions of this crate and the instant tier both go
//! through the same cores, so that they cannot drift apart; a test compiles the signatures.

use crate::Array;
use std::fmt;
use std::sync::Arc;
use vramlab_ir::{DType, Fault};

/// A value of the instant tier, and the common currency of the dynamic entry points.
#[derive(Clone, Debug, Default)]
pub enum Dyn {
    #[default]
    Unit,
    Bool(bool),
    /// Every integer type is kept wide; the static type knows which one it is.
    Int(i128),
    Float(f64),
    Char(char),
    Text(Arc<str>),
    DType(DType),
    /// An array by value: passing it moves it.
    Array(Array),
    /// `&array`.
    Borrowed(Array),
    /// `[T; N]` and `Vec<T>`; the static type knows which one it is.
    List(Vec<Dyn>),
    Tuple(Vec<Dyn>),
    /// `a..b`, `a..=b`, `..`, …: bounds as written.
    Range {
        start: Option<i128>,
        end: Option<i128>,
        inclusive: bool,
    },
    Option(Option<Box<Dyn>>),
    /// A closure, `fn` item, jitted or transformed function.
    Function(Arc<dyn Callable>),
    /// A struct of the prelude by its fields: `memory_stats()`, `memory_analysis()`.
    Record {
        name: &'static str,
        fields: Vec<(&'static str, Dyn)>,
    },
}

/// Something a cell can call with arguments by position.
pub trait Callable: Send + Sync + fmt::Debug {
    /// # Errors
    /// A fault of the body; panics of the user's code are faults of kind `Panic`.
    fn call(&self, arguments: Vec<Dyn>) -> Result<Dyn, Fault>;

    /// For downcasting to what a method needs (`Jit` for `memory_analysis`).
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Function, or method of a type of the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Function,
    /// Method of `Array`, `Jit`, `MemoryStats`, …: the receiver type's name.
    Method(&'static str),
    /// A constant: `F32`, `PI`.
    Constant,
}

/// One name.
pub struct Item {
    pub name: &'static str,
    pub place: Place,
    /// As rustc reads it, bounds included: `fn softmax(x: impl Operand, axis: i32) -> Array`,
    /// `fn jit<const N: usize, Out: Tree>(f: impl Fn([&Array; N]) -> Out) -> Jit<N, Out>`.
    pub signature: &'static str,
    pub doc: &'static str,
    /// A cell that runs.
    pub example: &'static str,
    /// `arguments[0]` is the receiver for methods.
    pub call: fn(Vec<Dyn>) -> Result<Dyn, Fault>,
}
