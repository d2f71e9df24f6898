//! The typed tree: what the check makes of the syntax. Names are resolved, types may hold
//! variables until the cell's inference is finished.

use crate::code::FnCell;
use crate::ir::Span;
use crate::library::Row;
use crate::structs::StructDef;
use crate::ty::Ty;
use crate::value::Value;
use std::sync::Arc;
use vramlab_array::surface::Item;

/// A named place of one cell: parameter, `let` binding, session variable.
pub type LocalId = u32;
/// The cell's top level (0), a `fn` item or a closure.
pub type BodyId = u32;
pub type LoopId = u32;

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Ty,
    pub mutable: bool,
    pub span: Span,
    pub owner: BodyId,
    /// Its place among the session's variables; top-level bindings and earlier cells' ones.
    pub global: Option<u32>,
    /// Bound by an earlier cell.
    pub earlier: Option<u32>,
}

#[derive(Debug)]
pub struct Expr {
    pub kind: Kind,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Debug)]
pub enum Kind {
    Literal(Value),
    Local(LocalId),
    Function(Arc<FnCell>),
    /// `f64::max` as a value.
    Method(crate::library::Candidate),
    Constant(&'static Item),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Assign(Box<Expr>, Box<Expr>),
    /// `(a, b) = (b, a)`.
    Destructure(Pattern, Box<Expr>),
    Compound(BinaryOp, Box<Expr>, Box<Expr>),
    Borrow(bool, Box<Expr>),
    Deref(Box<Expr>),
    Field(Box<Expr>, u32),
    /// A field of a record of the prelude.
    Member(Box<Expr>, &'static str),
    /// One element by number, or a slice by range.
    Index(Box<Expr>, Box<Expr>),
    Tuple(Vec<Expr>),
    /// Fields by their positions, as they are written; the rest comes from the base.
    Struct {
        def: Arc<StructDef>,
        fields: Vec<(u32, Expr)>,
        base: Option<Box<Expr>>,
    },
    List(Vec<Expr>),
    Repeat(Box<Expr>, Box<Expr>),
    Range {
        start: Option<Box<Expr>>,
        end: Option<Box<Expr>>,
        inclusive: bool,
    },
    Some(Box<Expr>),
    Block(Block),
    If {
        condition: Box<Expr>,
        then: Block,
        otherwise: Option<Box<Expr>>,
    },
    /// In conditions only.
    Let(Box<Pattern>, Box<Expr>),
    Match(Box<Expr>, Vec<Arm>),
    Loop {
        id: LoopId,
        body: Block,
    },
    While {
        id: LoopId,
        condition: Box<Expr>,
        body: Block,
    },
    For {
        id: LoopId,
        pattern: Box<Pattern>,
        iterated: Box<Expr>,
        body: Block,
    },
    Break(LoopId, Option<Box<Expr>>),
    Continue(LoopId),
    Return(Option<Box<Expr>>),
    /// `value?` of an `Option`.
    Try(Box<Expr>),
    Closure(Box<Closure>),
    Call(Callee, Vec<Expr>),
    Cast(Box<Expr>),
    /// The text of format pieces.
    Format(Format),
    Print {
        format: Format,
        error: bool,
        newline: bool,
    },
    /// Appends text to a `String`.
    Write {
        target: Box<Expr>,
        format: Format,
    },
    Panic(Format),
    /// `assert!(…)`: (condition, its text or message).
    Assert(Box<Expr>, Option<Format>, String),
    /// `assert_eq!` and `assert_ne!`.
    AssertEqual {
        left: Box<Expr>,
        right: Box<Expr>,
        equal: bool,
        message: Option<Format>,
    },
}

#[derive(Debug)]
pub enum Callee {
    /// With the types of its `Element` parameters.
    Surface(&'static Item, Vec<Ty>),
    Library(&'static Row),
    Function(Arc<FnCell>),
    /// A method of a cell's struct, the receiver first.
    Method(Arc<FnCell>),
    /// A closure, a function pointer, a boxed or a jitted function.
    Value(Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinaryOp {
    pub const fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
        }
    }

    /// The method of the operator's trait, which is also the op's name in the prelude.
    pub const fn method(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Rem => "rem",
            BinaryOp::BitAnd => "bitand",
            BinaryOp::BitOr => "bitor",
            BinaryOp::BitXor => "bitxor",
            BinaryOp::Shl => "shl",
            BinaryOp::Shr => "shr",
            BinaryOp::Eq => "eq",
            BinaryOp::Ne => "ne",
            BinaryOp::Lt => "lt",
            BinaryOp::Le => "le",
            BinaryOp::Gt => "gt",
            BinaryOp::Ge => "ge",
        }
    }

    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        )
    }

    pub const fn is_shift(self) -> bool {
        matches!(self, BinaryOp::Shl | BinaryOp::Shr)
    }

    pub const fn is_arithmetic(self) -> bool {
        matches!(
            self,
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem
        )
    }
}

#[derive(Debug)]
pub struct Block {
    pub statements: Vec<Statement>,
    pub tail: Option<Box<Expr>>,
    pub span: Span,
    /// A labeled block is left by `break`.
    pub label: Option<LoopId>,
}

#[derive(Debug)]
pub enum Statement {
    Let {
        pattern: Box<Pattern>,
        value: Option<Box<Expr>>,
        otherwise: Option<Box<Block>>,
        span: Span,
    },
    Expr(Expr),
}

#[derive(Debug)]
pub struct Arm {
    pub pattern: Pattern,
    pub guard: Option<Expr>,
    pub body: Expr,
}

#[derive(Debug)]
pub struct Closure {
    pub body_id: BodyId,
    pub params: Vec<Pattern>,
    pub body: Expr,
    pub by_move: bool,
    /// The kind that the place it is passed to wants.
    pub wanted: Option<crate::ty::ClosureKind>,
    pub head: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    Value,
    Ref,
    Mut,
}

#[derive(Debug)]
pub struct Pattern {
    pub kind: PatternKind,
    /// Of what it is matched against.
    pub ty: Ty,
    pub span: Span,
}

#[derive(Debug)]
pub enum PatternKind {
    Wild,
    Bind {
        local: LocalId,
        by: Binding,
        inner: Option<Box<Pattern>>,
    },
    /// In destructuring assignments.
    Assign(Box<Expr>),
    Literal(Value),
    Range {
        low: Option<Value>,
        high: Option<Value>,
        inclusive: bool,
    },
    Tuple(Vec<Pattern>),
    Slice {
        before: Vec<Pattern>,
        rest: Option<Option<Box<Pattern>>>,
        after: Vec<Pattern>,
    },
    Some(Box<Pattern>),
    None,
    /// `Ok(…)`, or `Err(…)`.
    Outcome(bool, Box<Pattern>),
    /// Through a reference, written or implied.
    Deref(Box<Pattern>),
    Or(Vec<Pattern>),
}

/// A format string with its arguments in the order of their use.
#[derive(Debug)]
pub struct Format {
    pub pieces: Vec<Piece>,
    pub arguments: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Value { argument: usize, spec: Spec },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub fill: char,
    pub align: Option<Align>,
    pub plus: bool,
    pub alternate: bool,
    pub zero: bool,
    pub width: Option<Count>,
    pub precision: Option<Count>,
    pub style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Center,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Literal(usize),
    Argument(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Display,
    Debug,
    LowerHex,
    UpperHex,
    Binary,
    Octal,
    LowerExp,
    UpperExp,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            fill: ' ',
            align: None,
            plus: false,
            alternate: false,
            zero: false,
            width: None,
            precision: None,
            style: Style::Display,
        }
    }
}

/// A `fn` item of the cell, checked.
#[derive(Debug)]
pub struct Function {
    pub cell: Arc<FnCell>,
    pub body_id: BodyId,
    pub params: Vec<Pattern>,
    pub body: Expr,
}

/// The whole cell, checked but for flow.
#[derive(Debug)]
pub struct Tree {
    /// Closures that must capture nothing: they stand where a function pointer is wanted.
    pub pointers: Vec<(u64, Span, String)>,
    pub locals: Vec<Local>,
    pub functions: Vec<Function>,
    pub body: Block,
    /// The tail is only a variable.
    pub tail_variable: bool,
}
