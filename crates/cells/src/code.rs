//! What a checked cell is run as: a register machine that spells out temporaries, moves, borrows
//! and drops, one instruction after the other. The flow check and the interpreter read the same
//! instructions, so that what was checked is what runs.

use crate::hir::{BinaryOp, Binding, Piece};
use crate::ir::Span;
use crate::library::Row;
use crate::ty::{FloatKind, FnSig, IntKind, Ty};
use crate::value::Value;
use std::fmt;
use std::sync::{Arc, OnceLock};
use vramlab_array::StructNames;
use vramlab_array::surface::Item;

/// A `fn` item. Its code is set once the item is built; calls reach it through this cell, so
/// functions may call each other.
pub struct FnCell {
    pub id: u64,
    pub name: String,
    pub sig: Arc<FnSig>,
    pub code: OnceLock<Arc<Code>>,
    /// As the user wrote it.
    pub source: String,
    /// References in the result come from these arguments alone.
    pub lends: Option<Vec<usize>>,
    /// Its signature leaves out the lifetime that the result takes from the receiver.
    pub lends_first: bool,
}

impl fmt::Debug for FnCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fn {}", self.name)
    }
}

/// A place on the stack: relative to the frame, or absolute with [`GLOBAL`] set.
pub type Slot = u32;

/// Marks the session's variables, which live at the bottom of the stack.
pub const GLOBAL: Slot = 1 << 31;

#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub slot: Slot,
    pub steps: Vec<Step>,
}

impl Place {
    pub fn slot(slot: Slot) -> Place {
        Place { slot, steps: Vec::new() }
    }

    pub fn step(mut self, step: Step) -> Place {
        self.steps.push(step);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Through a reference; on a snapshot it stays where it is.
    Deref,
    /// A tuple's field, an `Option`'s content, a list's element that a pattern proved to exist.
    Child(u32),
    /// Counted from the end of a list.
    FromEnd(u32),
    /// `v[slot]`.
    Index(Slot),
    /// `v[3]`.
    At(u32),
}

#[derive(Clone, Debug)]
pub enum Operand {
    Copy(Place),
    Move(Place),
    Const(Value),
}

/// The type that arithmetic works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Num {
    Int(IntKind),
    Float(FloatKind),
    Bool,
    Char,
    Other,
}

impl Num {
    pub fn of(ty: &Ty) -> Num {
        match ty.peeled() {
            Ty::Int(kind) => Num::Int(*kind),
            Ty::Float(kind) => Num::Float(*kind),
            Ty::Bool => Num::Bool,
            Ty::Char => Num::Char,
            _ => Num::Other,
        }
    }
}

/// What a pattern asks of a place.
#[derive(Clone, Debug)]
pub enum Test {
    Equals(Value),
    Between { low: Option<Value>, high: Option<Value>, inclusive: bool },
    Some,
    None,
    Ok,
    Err,
    Length { count: usize, at_least: bool },
}

/// Types that a library function needs at run time.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Of the arguments, the receiver first.
    pub args: Vec<Ty>,
    pub ret: Ty,
}

#[derive(Clone, Debug)]
pub enum Inst {
    Nop,
    Set {
        place: Place,
        value: Operand,
    },
    Ref {
        dest: Slot,
        place: Place,
        mutable: bool,
    },
    Binary {
        dest: Slot,
        op: BinaryOp,
        num: Num,
        left: Operand,
        right: Operand,
    },
    Not {
        dest: Slot,
        num: Num,
        value: Operand,
    },
    Negate {
        dest: Slot,
        num: Num,
        value: Operand,
    },
    Cast {
        dest: Slot,
        from: Num,
        to: Num,
        value: Operand,
    },
    Tuple {
        dest: Slot,
        parts: Vec<Operand>,
    },
    /// The fields in the order of declaration.
    Struct {
        dest: Slot,
        names: Arc<StructNames>,
        parts: Vec<Operand>,
    },
    List {
        dest: Slot,
        parts: Vec<Operand>,
    },
    Some {
        dest: Slot,
        value: Operand,
    },
    Range {
        dest: Slot,
        start: Option<Operand>,
        end: Option<Operand>,
        inclusive: bool,
    },
    Repeat {
        dest: Slot,
        value: Operand,
        count: Operand,
    },
    Closure {
        dest: Slot,
        code: Arc<Code>,
        captures: Vec<Operand>,
    },
    /// The middle of a list that a pattern names.
    Rest {
        dest: Slot,
        place: Place,
        skip: u32,
        leave: u32,
        by: Binding,
    },
    /// `v[range]` behind a reference; of text too.
    SliceOf {
        dest: Slot,
        place: Place,
        range: Operand,
        mutable: bool,
    },
    Member {
        dest: Slot,
        place: Place,
        name: &'static str,
    },
    Call {
        dest: Slot,
        function: Arc<FnCell>,
        args: Vec<Operand>,
    },
    CallValue {
        dest: Slot,
        callee: Operand,
        args: Vec<Operand>,
    },
    CallLibrary {
        dest: Slot,
        row: &'static Row,
        args: Vec<Operand>,
        meta: Arc<Meta>,
    },
    CallSurface {
        dest: Slot,
        item: &'static Item,
        args: Vec<Operand>,
    },
    /// An operator with an array beside it.
    ArrayBinary {
        dest: Slot,
        op: BinaryOp,
        left: Operand,
        right: Operand,
    },
    ArrayNegate {
        dest: Slot,
        value: Operand,
    },
    Iterate {
        dest: Slot,
        value: Operand,
    },
    Next {
        iter: Slot,
        dest: Slot,
        exit: u32,
    },
    Jump(u32),
    Unless {
        condition: Operand,
        target: u32,
    },
    Test {
        place: Place,
        test: Test,
        otherwise: u32,
    },
    Format {
        dest: Slot,
        pieces: Arc<[Piece]>,
        args: Arc<[Ty]>,
        values: Vec<Operand>,
    },
    Print {
        text: Operand,
        error: bool,
    },
    Panic {
        text: Operand,
    },
    /// The message of a failed `assert_eq!` or `assert_ne!`.
    Unequal {
        left: Operand,
        right: Operand,
        types: Arc<(Ty, Ty)>,
        equal: bool,
        text: Option<Operand>,
    },
    /// A list of another length is no argument list for the function.
    Count {
        list: Place,
        want: usize,
    },
    /// The end of a life.
    Drop(Slot),
    /// Names what the place holds for the tables.
    Bound {
        place: Place,
        name: Arc<str>,
        last: bool,
    },
    Return(Operand),
    /// For the flow check only: the value must not hold references.
    Static {
        slot: Slot,
        closure: bool,
    },
    /// For the flow check only: the place is looked at as a whole.
    Look(Place),
}

/// A body, ready to run.
pub struct Code {
    pub name: String,
    pub cell: u32,
    /// Slots of a frame: arguments first, then captures, then the rest.
    pub slots: u32,
    pub args: u32,
    pub captures: u32,
    pub insts: Vec<Inst>,
    pub spans: Vec<Span>,
    /// Per call: where the arrays that it takes came from.
    pub restores: std::collections::HashMap<usize, Vec<Restore>>,
}

/// A part of a call's argument, and the place that it was moved from.
#[derive(Clone, Debug)]
pub struct Restore {
    pub argument: usize,
    pub path: Vec<u32>,
    pub place: Place,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}", self.name)
    }
}

/// The code as text, for tests and for whoever looks into the tier.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({} slots)", self.name, self.slots)?;
        for (index, inst) in self.insts.iter().enumerate() {
            writeln!(f, "{index:>4} {inst:?}")?;
        }
        Ok(())
    }
}

/// What the flow check knows about a slot.
#[derive(Clone, Debug)]
pub struct SlotFacts {
    pub ty: Ty,
    /// A variable of the user.
    pub name: Option<String>,
    pub mutable: bool,
    pub span: Span,
    /// Initialised on entry: parameters, captures, variables of earlier cells.
    pub entry: Entry,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    No,
    Argument,
    /// Captured: by value, or as a reference to the variable.
    Capture {
        by_reference: bool,
    },
    /// A variable of an earlier cell.
    Earlier {
        cell: u32,
        held: Held,
    },
}

/// What flow left behind about a session variable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// The cell and place that moved it away.
    pub moved: Option<(u32, Span)>,
    /// What it borrows (a session variable's place), and whether mutably.
    pub loans: Vec<(Place, bool)>,
    /// What it borrows was moved, dropped or changed since.
    pub invalid: Option<Invalid>,
}

/// A conflict that becomes a fault when the reference is used again.
#[derive(Clone, Debug, PartialEq)]
pub struct Invalid {
    pub code: &'static str,
    pub message: String,
    pub cell: u32,
    pub span: Span,
}

/// A body before the flow check.
pub struct Draft {
    pub name: String,
    pub insts: Vec<Inst>,
    pub spans: Vec<Span>,
    pub slots: Vec<SlotFacts>,
    /// The global slots that the body touches.
    pub globals: Vec<(Slot, SlotFacts)>,
    pub args: u32,
    pub captures: u32,
    pub is_closure: bool,
    pub is_cell: bool,
    /// References in the result may only come from the first argument.
    pub lends_first: bool,
}
