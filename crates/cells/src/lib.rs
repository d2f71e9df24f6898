//! `cells`: Rust text → static check → run. The instant tier.
//!
//! Place in the flow: `session` hands a cell's text in; out come diagnostics under rustc's codes, or
//! calls of the prelude's surface (`vramlab_array::surface`) and, through [`Host`], printed text.
//! rustc's meaning is the authority: a cell that passes the check here prints what rustc's program
//! would print, and what rustc refuses is refused here under the same code.
//!
//! Inside, one direction: text → [`guard`] → `syn` → typed tree → code (a register machine that
//! spells out temporaries, moves and drops) → flow check (initialisation, moves, borrows) → run.
//!
//! Absent on purpose: devices, engines, tables, commands (`%`), `Out[n]`; the rewriting of those is
//! the session's.

mod arithmetic;
mod build;
mod check;
mod code;
pub mod diagnostic;
mod exhaustive;
mod flow;
mod fold;
mod format;
pub mod guard;
mod hir;
pub mod host;
mod interpreter;
mod interrupt;
mod iter;
mod library;
mod place;
mod show;
mod signature;
mod structs;
mod transplant;
mod ty;
mod value;
mod vm;

pub use diagnostic::{Diagnostic, DiagnosticKind, Label, render, render_place};
pub use guard::{Completeness, completeness};
pub use host::{Host, RunOutcome, Shown, Variable};
pub use interpreter::{Interpreter, Member, Prepared};
pub use transplant::{NoCopy, Replace};
pub use vramlab_array::ir;
