//! What a running cell may ask of the session, and what it hands back.

use crate::ir::{Fault, Span};
use crate::ty::Ty;
use vramlab_array::surface::Dyn;

/// The session's side of a run. Every call happens on the thread that runs the cell.
pub trait Host {
    fn stdout(&mut self, text: &str);
    fn stderr(&mut self, text: &str);
    /// `display(&x)`.
    fn display(&mut self, value: &Dyn);
    /// A line typed by the user.
    ///
    /// # Errors
    /// When there is nobody to ask.
    fn input(&mut self, prompt: &str) -> Result<String, Fault>;
    /// Asked at every loop back-edge and call.
    fn interrupted(&self) -> bool;
    /// An array is now held under this path (`x`, `params[3]`, `t.0`).
    fn bound(&mut self, path: &str, value: &Dyn);
    /// Something that the user should know beside what the cell itself says.
    fn note(&mut self, text: &str);
}

/// A cell's value.
#[derive(Clone, Debug)]
pub struct Shown {
    pub value: Dyn,
    /// As Rust spells it.
    pub ty: String,
    /// The value as text: `{:?}` for Rust's own types, `{}` for arrays.
    pub text: String,
    /// The tail is only a variable: shown, not moved, and not kept in `Out`.
    pub is_variable: bool,
    /// The type itself, which the text may not name in a later cell.
    pub(crate) of: Ty,
}

/// How a run ended. Both may be `None`: the cell had no value.
#[derive(Clone, Debug, Default)]
pub struct RunOutcome {
    pub value: Option<Shown>,
    pub error: Option<Fault>,
    /// Where the cell itself stood at the error, which may lie in a function of another cell.
    pub failed_at: Option<Span>,
}

/// A session variable, as listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub name: String,
    pub ty: String,
    pub mutable: bool,
    /// The cell that bound it.
    pub cell: u32,
    /// The cell that moved it away.
    pub moved: Option<u32>,
}
