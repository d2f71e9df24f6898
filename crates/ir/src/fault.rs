//! What a user did wrong, or what the device could not give: facts first, prose last.

use std::fmt;

/// A place in a cell: 1-based lines and columns, in characters; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

/// Where in the user's text an action began; `cell` counts from 1, 0 when unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Origin {
    pub cell: u32,
    pub span: Span,
}

impl Origin {
    /// In words, for who reads them in `cell`: `line 3`, or `cell 2, line 3` when it lies in another one.
    pub fn seen_from(self, cell: u32) -> String {
        let line = self.span.line;
        if self.cell == cell {
            format!("line {line}")
        } else {
            format!("cell {}, line {line}", self.cell)
        }
    }
}

/// The stage or resource that refused. Faces choose the wording of a heading from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Shapes do not fit the op.
    Shape,
    /// Element types do not fit the op.
    DType,
    /// An axis, index, length or other argument is out of its range.
    Argument,
    /// The device could not give the memory; the engine keeps the full report.
    OutOfMemory,
    /// The device carries no data (the dry device), and data was asked for.
    NoData,
    /// A buffer was used after it was donated.
    Donated,
    /// The user's own code panicked: `assert!`, overflow, an index out of bounds, `unwrap`.
    Panic,
    /// The user asked to stop.
    Interrupted,
    /// A traced function did what a trace cannot hold (read a value, changed its structure, …).
    Trace,
    /// The executable left the compile cache; callers compile again, so no user meets this.
    Evicted,
}

impl FaultKind {
    /// The word in brackets behind `error`: `error[OOM]`.
    pub const fn code(self) -> &'static str {
        match self {
            FaultKind::Shape => "shape",
            FaultKind::DType => "dtype",
            FaultKind::Argument => "argument",
            FaultKind::OutOfMemory => "OOM",
            FaultKind::NoData => "no-data",
            FaultKind::Donated => "donated",
            FaultKind::Panic => "panic",
            FaultKind::Interrupted => "interrupted",
            FaultKind::Trace => "trace",
            FaultKind::Evicted => "evicted",
        }
    }
}

/// A fault of the user or of the device. It never ends the process: the session reports it and goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    /// The op or function that refused, as the user wrote it: `dot`, `zeros`.
    pub op: String,
    /// What was wrong, with the shapes and figures: one sentence, no trailing period.
    pub message: String,
    /// What the user can do, when there is something to say.
    pub help: Option<String>,
    /// The cell (counted from 1; 0 when unknown) and the place in it.
    pub cell: u32,
    pub span: Option<Span>,
}

impl Fault {
    pub fn new(kind: FaultKind, op: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { kind, op: op.into(), message: message.into(), help: None, cell: 0, span: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    /// Adds the place unless an inner call already did: the innermost place is the useful one.
    pub fn at(mut self, cell: u32, span: Span) -> Fault {
        if self.span.is_none() {
            self.cell = cell;
            self.span = Some(span);
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.op.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.op, self.message)
        }
    }
}

impl std::error::Error for Fault {}
