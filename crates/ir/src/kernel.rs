//! Kernel images: what the compiler hands to a device, as plain data.
//!
//! A [`Program`] is a list of launches over buffers whose places were planned beforehand. Three
//! loop nests cover most ops: rows (maps and row reductions in stages), column reductions, and dot;
//! convolutions, running sums and scatter-add have ones of their own. Loops and branches hold kernels.

mod control;

pub use control::{Branch, Feed, Loop, Routine, Trips};

use crate::dtype::DType;
use crate::func::{Func, MemorySpace, Type};
use crate::lowering::{ConvAxis, ReduceKind};
use crate::scalar::{Inst, Reg};
use std::sync::Arc;

/// Where a launch reads or writes one array: element offset and strides over the loop's dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Index into the launch's `buffers`.
    pub buffer: u32,
    pub dtype: DType,
    /// Elements from the buffer's start.
    pub offset: isize,
    /// Elements per step along each dimension of the loop (`outer` dims, then columns). A stride of
    /// 0 repeats (broadcast).
    pub strides: Vec<isize>,
    /// Run-time starts that are added to the offset.
    pub starts: Vec<Start>,
}

/// `clamp(i32 scalar in buffer, 0, limit) · stride` elements: the start of a dynamic slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    pub buffer: u32,
    pub limit: i64,
    pub stride: isize,
}

/// An instruction of a loop body. `Scalar` instructions are those of [`crate::scalar`], where
/// `Inst::Input { input }` and `Inst::Gather { input, .. }` name `reads[input]` of the loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LoopInst {
    /// `Inst::Index { axis }` is the coordinate along loop dimension `axis`, and `Inst::Position`
    /// the row-major position over all loop dimensions. `Inst::Gather` never appears here.
    Scalar(Inst),
    /// Element of `reads[read]` at the loop's coordinates plus `clamp(index, 0, limit) · stride`.
    Gather { read: u32, index: Reg, limit: i64, stride: isize },
    /// An element kept by an earlier column stage of the same row.
    Kept { slot: u32, dtype: DType },
    /// The row's scalar in `slot`: a reduction's result, or a row stage's value.
    RowScalar { slot: u32, dtype: DType },
}

/// What happens to a register of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sink {
    /// Writes the element to `writes[write]`.
    Store { write: u32, reg: Reg },
    /// Keeps the element for later stages of the row (column stages only).
    Keep { slot: u32, reg: Reg },
    /// Column stages: reduces over the columns into row scalar `slot`.
    Reduce { kind: ReduceKind, reg: Reg, slot: u32 },
    /// Row stages: sets row scalar `slot`.
    SetRow { slot: u32, reg: Reg },
}

/// One pass over a row's columns (`Columns`), or one evaluation per row (`Row`: only `RowScalar`,
/// `Const`, `Input` reads at column 0, `Index` and their ops; stores go to column 0).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    pub per: Per,
    pub insts: Vec<LoopInst>,
    pub sinks: Vec<Sink>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Per {
    Columns,
    Row,
}

/// For every row (coordinates over `outer`): the stages in order. A map is one column stage.
///
/// A write may take over the bytes of a read, in the same buffer or in another slot at the same
/// place. The two then have equal accesses (element size, offset, strides and starts), and nothing
/// reads those bytes in a later stage: so a device may take as many elements of a row at once as it
/// likes, as long as it reads all of them before it writes any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowLoop {
    pub outer: Vec<usize>,
    pub columns: usize,
    pub reads: Vec<Access>,
    pub writes: Vec<Access>,
    pub stages: Vec<Stage>,
    /// Number of `Keep` slots and of row scalars.
    pub kept: u32,
    pub row_scalars: u32,
}

/// `write[k][outer, column] = reduce over r of reg_k(outer, r, column)`: the reduced dimension is
/// not the fastest. Loop dimensions are `outer`, then `reduced`, then `columns`; writes have no
/// stride along `reduced` (their entry there is 0).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnReduce {
    pub outer: Vec<usize>,
    pub reduced: usize,
    pub columns: usize,
    pub reads: Vec<Access>,
    pub writes: Vec<Access>,
    pub insts: Vec<LoopInst>,
    /// (kind, register, index into `writes`)
    pub reduces: Vec<(ReduceKind, Reg, u32)>,
}

/// `c[b, i, j] = epilogue(Σ_k a[b, i, k] · b[b, k, j])`. `c` is dense `[batch…, m, n]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dot {
    pub dtype: DType,
    pub batch: Vec<usize>,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Strides over batch dims, then (m, k) for `a`, (k, n) for `b`.
    pub a: Access,
    pub b: Access,
    /// Strides over batch dims, then (m, n). Always dense.
    pub c: Access,
    /// Applied element by element to finished rows of `c`: loop dimensions batch…, m, n. The
    /// product is `LoopInst::Kept { slot: 0, .. }`; the result is the last register, stored to `c`.
    pub epilogue: Option<Epilogue>,
}

impl Dot {
    /// Whether the result may take over the bytes of what the epilogue reads by `access`: each element
    /// is read where it is written. A device sums the product elsewhere then.
    pub fn yields(&self, access: &Access) -> bool {
        let place = |access: &Access| (access.dtype.size(), access.offset, access.starts.clone());
        place(access) == place(&self.c) && access.strides == self.c.strides
    }

    /// Whether [`Dot::yields`] holds for some read of the epilogue.
    pub fn may_work_in_place(&self) -> bool {
        self.epilogue.as_ref().is_some_and(|e| e.reads.iter().any(|read| self.yields(read)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epilogue {
    pub reads: Vec<Access>,
    pub insts: Vec<LoopInst>,
}

/// `write[o, l, i] = reduce of read[o, .., i]` up to l, or from l to the end. Both arrays are dense
/// `[outer, length, inner]`; the write may take over the read's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cumulative {
    pub kind: ReduceKind,
    pub dtype: DType,
    pub reverse: bool,
    pub outer: usize,
    pub length: usize,
    pub inner: usize,
    /// Indices into the launch's `buffers`.
    pub read: u32,
    pub write: u32,
}

/// `write[o, clamp(indices[j]), i] += updates[o, j, i]` for j ascending: `write` is dense `[outer,
/// extent, inner]`, `updates` dense `[outer, count, inner]`, `indices` i32, negative ones from the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scatter {
    pub dtype: DType,
    pub outer: usize,
    pub extent: usize,
    pub count: usize,
    pub inner: usize,
    /// Indices into the launch's `buffers`.
    pub indices: u32,
    pub updates: u32,
    pub write: u32,
}

/// `write[n, p…, o] = Σ over k… and c of x[n, element…, c] · w[k…, c, o]`, where each axis of space says
/// which element of x a result reads under a tap, if any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conv {
    pub dtype: DType,
    pub examples: usize,
    pub space: Vec<Space>,
    pub channels: usize,
    pub results: usize,
    /// Strides over (n, s…, c).
    pub x: Access,
    /// Strides over (k…, c, o).
    pub w: Access,
    /// Strides over (n, p…, o). Always dense.
    pub write: Access,
}

/// One axis of space: how many elements, taps and results it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Space {
    pub x: usize,
    pub taps: usize,
    pub results: usize,
    pub moves: ConvAxis,
}

/// Bytes of one buffer copied to another: from device memory to the host's, or back. What a copy
/// engine does beside the kernels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    pub bytes: u64,
    /// The memory that is written.
    pub to: MemorySpace,
    pub read: TransferEnd,
    pub write: TransferEnd,
}

/// One side of a [`Transfer`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransferEnd {
    /// Index into the launch's `buffers`.
    pub buffer: u32,
    /// Where its bytes begin, where that is a slice of a stack: strides are in bytes.
    pub start: Option<Start>,
}

impl TransferEnd {
    /// The whole of a buffer.
    pub fn whole(buffer: u32) -> TransferEnd {
        TransferEnd { buffer, start: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    Rows(RowLoop),
    Columns(ColumnReduce),
    Dot(Dot),
    Conv(Conv),
    Cumulative(Cumulative),
    Scatter(Scatter),
    Transfer(Transfer),
    Loop(Box<Loop>),
    Branch(Box<Branch>),
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Readable: the ops it holds, `tanh_mul_add`.
    pub name: String,
    /// Slots of [`Program::slots`] that `Access::buffer` indexes.
    pub buffers: Vec<u32>,
    pub body: Body,
    /// Device memory traffic by the operands' sizes, bytes (each operand once). Loops count every
    /// iteration, those without a known end one; of a branch the side that does more counts.
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub flops: u64,
}

impl Kernel {
    /// Whether it ends after a number of steps that is known beforehand: it holds no loop that goes
    /// on while a condition holds.
    pub fn is_bounded(&self) -> bool {
        match &self.body {
            Body::Loop(body) => body.is_bounded(),
            Body::Branch(body) => body.on_true.is_bounded() && body.on_false.is_bounded(),
            _ => true,
        }
    }

    /// Indices of the `buffers` that it writes into; one may stand twice.
    pub fn writes(&self) -> Vec<u32> {
        match &self.body {
            Body::Rows(rows) => rows.writes.iter().map(|access| access.buffer).collect(),
            Body::Columns(columns) => columns.writes.iter().map(|access| access.buffer).collect(),
            Body::Dot(dot) => vec![dot.c.buffer],
            Body::Conv(conv) => vec![conv.write.buffer],
            Body::Cumulative(body) => vec![body.write],
            Body::Scatter(body) => vec![body.write],
            Body::Transfer(body) => vec![body.write.buffer],
            Body::Loop(body) => body.writes(),
            Body::Branch(body) => body.writes(),
        }
    }
}

/// Where a slot's bytes live at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The buffer of argument `index`.
    Argument { index: u32 },
    /// Fresh result buffer `index`, allocated before the first launch.
    Result { index: u32 },
    /// Bytes `offset..` of the one temporary block.
    Temporary { offset: u64 },
    /// Bytes `offset..` of the one block of host memory.
    Host { offset: u64 },
}

/// A buffer of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub ty: Type,
    pub place: Place,
    /// What it holds, for explanations: an op's name, `argument 0`.
    pub label: String,
}

/// How result i comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultSource {
    /// A fresh buffer, `Place::Result { index }`.
    Fresh { index: u32 },
    /// Argument `index`'s buffer, donated: the result takes it over.
    Donated { argument: u32 },
    /// Argument `index`'s buffer, shared with its holder (reshape, or returned as it came).
    Shared { argument: u32 },
    /// The same buffer as an earlier result.
    Same { result: u32 },
}

/// A compiled program, ready for a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// As traced.
    pub func: Arc<Func>,
    pub slots: Vec<Slot>,
    pub kernels: Vec<Kernel>,
    pub results: Vec<ResultSource>,
    /// Bytes of each fresh result buffer, by `Place::Result` index.
    pub fresh_bytes: Vec<u64>,
    /// The memory of each fresh result buffer.
    pub fresh_memory: Vec<MemorySpace>,
    /// Bytes of the temporary block; 0: none is allocated.
    pub temp_bytes: u64,
    /// Bytes of the block of host memory, where values are that were offloaded; 0: none is obtained.
    pub host_temp_bytes: u64,
    /// Arguments that were offered for donation: used, or why not.
    pub donations: Vec<Donation>,
    /// Requested bytes of the device live at the peak: arguments + fresh results + temporaries (all of a
    /// program's buffers are allocated before its first launch, as XLA does).
    pub peak_bytes: u64,
    /// Stages as text, in order: (name, text). For `%explain`.
    pub stages: Vec<(String, String)>,
    /// Bytes of intermediates that fusion never stored.
    pub fused_bytes: u64,
    /// What the passes did, a line each: a fusion made, or refused and why.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Donation {
    pub argument: u32,
    pub used: bool,
    /// `aliases result 0`, or why it could not be used.
    pub reason: String,
}
