//! A stage's instructions made into steps: block functions over numbered slots.
//!
//! A slot is a buffer of the frame (or, for a moment, memory of an array that is read or written in place). Values that
//! are the same for a whole launch or a whole tile are computed there once, as one chunk; only what varies is computed
//! block by block, in few buffers that are used again and again. A product that one sum alone uses is contracted with
//! it where the instruction set can.

use super::access::{Axis, Nest, Place};
use super::chain::{self, ChainFn, Kind, Micro};
use super::lanes::{BLOCK, BlockFn, CHUNK};
use super::ops::{self, Fused};
use super::reduce::Reducer;
use crate::LaunchError;
use crate::cpu::isa::Isa;
use std::collections::BTreeMap;
use vramlab_ir::kernel::{LoopInst, Per, Sink};
use vramlab_ir::{DType, Inst, Reg, ScalarOp};

/// Index of a slot.
pub(super) type SlotId = u16;

/// A buffer of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Where it lies in the frame.
    pub offset: usize,
    /// Bytes from chunk to chunk; 0 where it holds one chunk.
    pub step: usize,
}

/// One deed on a tile.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Points the slot at the array where that is possible, else copies.
    Load { read: u16, slot: SlotId },
    /// Fills one chunk with the element of the tile's first row at column 0.
    Splat { read: u16, slot: SlotId },
    /// `index` holds i32, or i64 where `wide`.
    Gather { read: u16, index: SlotId, wide: bool, slot: SlotId, limit: i64, stride: isize },
    /// The column of each lane, i32.
    Column { slot: SlotId },
    /// The coordinate along an outer dimension of each lane, i32.
    Outer { axis: u16, slot: SlotId },
    /// The position of each lane, u32.
    Position { slot: SlotId },
    /// Spreads one value a row over the columns.
    Spread { row: SlotId, slot: SlotId, size: u8 },
    /// A block function.
    Apply { f: BlockFn, out: SlotId, args: [SlotId; 3] },
    /// A run of arithmetic in registers.
    Chain { f: ChainFn, out: SlotId, micros: Vec<Micro> },
}

/// What becomes of a register at the end of a block.
#[derive(Clone, Debug)]
pub(super) enum Drain {
    /// To memory. `direct`: the slot may have pointed there already.
    Store { write: u16, slot: SlotId, direct: bool },
    /// Into a kept buffer, unless the slot is that buffer.
    Keep { kept: SlotId, slot: SlotId },
    /// Into reduction `reduce` of the stage.
    Reduce { reduce: u16, slot: SlotId },
    /// Into a row slot, unless the slot is that row slot.
    SetRow { row: SlotId, slot: SlotId, size: u8 },
}

/// A reduction of a stage.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    pub reducer: Reducer,
    /// Where the result goes, in the reducer's own dtype.
    pub row: SlotId,
    /// What is left to do with it then (rounding to a 16-bit float).
    pub after: Vec<Step>,
}

/// A decoded stage.
#[derive(Clone, Debug)]
pub(super) struct StageProgram {
    pub per: Per,
    /// Once a launch.
    pub once: Vec<Step>,
    /// Once a tile (a row, in the long mode).
    pub tile: Vec<Step>,
    /// Once a block.
    pub block: Vec<Step>,
    pub drains: Vec<Drain>,
    pub reductions: Vec<Reduction>,
    /// Rough nanoseconds an element.
    pub cost: f64,
}

/// How often a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Once,
    Tile,
    Block,
}

/// Everything that stages share while they are decoded: slots, constants, the shape of the loop.
pub(super) struct Decoder<'a> {
    pub kernel: &'a str,
    pub isa: Isa,
    pub nest: &'a Nest,
    pub reads: &'a mut [Place],
    pub write_types: &'a [DType],
    /// Rows of a full tile; 1: the long mode, where a row is cut into blocks.
    pub tile_rows: usize,
    pub slots: Vec<Slot>,
    pub frame_bytes: usize,
    /// Constant splats by dtype size and bits.
    constants: BTreeMap<(usize, u64), SlotId>,
    /// Slots of row scalars by number, with their dtype.
    pub row_slots: BTreeMap<u32, (SlotId, DType)>,
    /// Slots of kept values by number, with the dtype.
    pub kept_slots: BTreeMap<u32, (SlotId, DType)>,
}

/// An instruction over lowered registers: 16-bit arithmetic and odd types are spelled out.
#[derive(Clone, Debug)]
enum Low {
    Read { read: u16 },
    Gather { read: u16, index: usize, wide: bool, limit: i64, stride: isize },
    Kept { slot: u32 },
    RowScalar { slot: u32 },
    Index { axis: Axis },
    Position,
    Constant { bits: u64 },
    Apply { f: BlockFn, args: Vec<usize>, cost: f64, arithmetic: Arithmetic },
}

/// Whether an op may stand in a chain, and as what.
#[derive(Clone, Copy, Debug)]
enum Arithmetic {
    Other,
    Op(ScalarOp),
    Fused(Fused),
}

impl Arithmetic {
    /// How it continues a chain whose running value is operand `position`.
    fn continues(self, position: usize) -> Option<Kind> {
        match self {
            Arithmetic::Other => None,
            Arithmetic::Op(op) => chain::continues(op, position),
            Arithmetic::Fused(op) => Some(chain::continues_fused(op, position)),
        }
    }
}

struct Lowered {
    insts: Vec<(Low, DType)>,
    /// From the stage's registers.
    map: Vec<usize>,
}

impl<'a> Decoder<'a> {
    pub fn new(
        kernel: &'a str,
        isa: Isa,
        nest: &'a Nest,
        reads: &'a mut [Place],
        write_types: &'a [DType],
        tile_rows: usize,
    ) -> Decoder<'a> {
        Decoder {
            kernel,
            isa,
            nest,
            reads,
            write_types,
            tile_rows,
            slots: Vec::new(),
            frame_bytes: 0,
            constants: BTreeMap::new(),
            row_slots: BTreeMap::new(),
            kept_slots: BTreeMap::new(),
        }
    }

    pub fn malformed(&self, what: impl Into<String>) -> LaunchError {
        LaunchError::Malformed { kernel: self.kernel.to_owned(), what: what.into() }
    }

    fn unsupported(&self, what: impl Into<String>) -> LaunchError {
        LaunchError::Unsupported { kernel: self.kernel.to_owned(), what: what.into() }
    }

    fn long(&self) -> bool {
        self.tile_rows == 1
    }

    /// A slot for `chunks` chunks of elements of `size` bytes; a splat where there is one chunk.
    fn slot(&mut self, size: usize, chunks: usize) -> SlotId {
        let offset = self.frame_bytes;
        // The extra lines keep buffers from falling into the same cache sets.
        self.frame_bytes += (size * CHUNK * chunks).next_multiple_of(64) + 192;
        let step = if chunks == 1 { 0 } else { size * CHUNK };
        self.slots.push(Slot { offset, step });
        self.slots.len() as SlotId - 1
    }

    pub fn block_slot(&mut self, size: usize) -> SlotId {
        self.slot(size, BLOCK / CHUNK)
    }

    pub fn splat_slot(&mut self, size: usize) -> SlotId {
        self.slot(size, 1)
    }

    /// The slot of a row scalar: one value in the long mode, one for each row of the tile in the other.
    fn row_slot(&mut self, size: usize) -> SlotId {
        if self.long() { self.splat_slot(size) } else { self.block_slot(size) }
    }

    /// Decodes one stage. Row scalars and kept values must have been made by an earlier one.
    pub fn stage(
        &mut self,
        per: Per,
        insts: &[LoopInst],
        sinks: &[Sink],
    ) -> Result<StageProgram, LaunchError> {
        let dtypes = self.dtypes(insts)?;
        if let Some(sink) = sinks.iter().find(|sink| register(sink) >= insts.len()) {
            return Err(self.malformed(format!("{sink:?} names no register")));
        }
        let lowered = self.lower(insts, sinks, &dtypes)?;
        let mut emitter = Emitter::new(self, per, lowered);
        emitter.emit(sinks)?;
        Ok(emitter.program)
    }

    /// The dtype of each register, with every operand checked against it.
    fn dtypes(&self, insts: &[LoopInst]) -> Result<Vec<DType>, LaunchError> {
        let mut dtypes: Vec<DType> = Vec::with_capacity(insts.len());
        for (at, inst) in insts.iter().enumerate() {
            let dtype = self.dtype(inst, &dtypes);
            dtypes.push(dtype.map_err(|what| self.malformed(format!("register {at}: {what}")))?);
        }
        Ok(dtypes)
    }

    fn dtype(&self, inst: &LoopInst, earlier: &[DType]) -> Result<DType, String> {
        let of = |reg: Reg| {
            let found = earlier.get(reg.0 as usize).copied();
            found.ok_or_else(|| format!("register {} is not an earlier one", reg.0))
        };
        let read = |read: u32| {
            let place = self.reads.get(read as usize);
            place.map(|place| place.dtype).ok_or_else(|| format!("there is no read {read}"))
        };
        let equal = |found: DType, wanted: DType| {
            if found == wanted { Ok(()) } else { Err(format!("{found} where {wanted} is wanted")) }
        };
        match inst {
            LoopInst::Scalar(Inst::Input { input, dtype }) => {
                equal(read(*input)?, *dtype)?;
                Ok(*dtype)
            }
            LoopInst::Scalar(Inst::Gather { .. }) => Err("a scalar gather in a loop".to_owned()),
            LoopInst::Scalar(Inst::Index { axis }) => match self.nest.axes.get(*axis as usize) {
                Some(Axis::Merged) => Err(format!("axis {axis} was merged away")),
                Some(_) => Ok(DType::I32),
                None => Err(format!("there is no axis {axis}")),
            },
            LoopInst::Scalar(Inst::Position) => Ok(DType::U32),
            LoopInst::Scalar(Inst::Const(value)) => Ok(value.dtype()),
            LoopInst::Scalar(Inst::Op { op, dtype, args }) => {
                if args.len() != op.arity() {
                    return Err(format!("{op:?} with {} operands", args.len()));
                }
                for (i, &arg) in args.iter().enumerate() {
                    let flag = *op == ScalarOp::Select && i == 0;
                    equal(of(arg)?, if flag { DType::Bool } else { *dtype })?;
                }
                Ok(op.result(*dtype))
            }
            LoopInst::Scalar(Inst::Convert { from, to, arg }) => {
                equal(of(*arg)?, *from)?;
                Ok(*to)
            }
            LoopInst::Gather { read: from, index, .. } => match of(*index)? {
                DType::I32 | DType::I64 => read(*from),
                other => Err(format!("an index of {other}")),
            },
            LoopInst::Kept { slot, dtype } => match self.kept_slots.get(slot) {
                Some(&(_, kept)) => equal(kept, *dtype).map(|()| *dtype),
                None => Err(format!("nothing was kept in {slot}")),
            },
            LoopInst::RowScalar { slot, dtype } => match self.row_slots.get(slot) {
                Some(&(_, scalar)) => equal(scalar, *dtype).map(|()| *dtype),
                None => Err(format!("row scalar {slot} was not set")),
            },
        }
    }

    fn lower(
        &mut self,
        insts: &[LoopInst],
        sinks: &[Sink],
        dtypes: &[DType],
    ) -> Result<Lowered, LaunchError> {
        let uses = count_uses(insts, sinks);
        let contracted =
            if self.isa.contracts() { contract(insts, &uses) } else { BTreeMap::new() };
        let absorbed: Vec<usize> = contracted.values().map(|c| c.product).collect();
        let mut lowered = Lowered { insts: Vec::new(), map: vec![usize::MAX; insts.len()] };
        for (at, inst) in insts.iter().enumerate() {
            if uses[at] == 0 || absorbed.contains(&at) {
                continue;
            }
            let index = match contracted.get(&at) {
                Some(contraction) => self.lower_contraction(&mut lowered, contraction, dtypes[at]),
                None => self.lower_inst(&mut lowered, inst, dtypes[at])?,
            };
            lowered.map[at] = index;
        }
        Ok(lowered)
    }

    fn lower_contraction(&self, lowered: &mut Lowered, c: &Contraction, dtype: DType) -> usize {
        let f = ops::fused(c.op, dtype, self.isa);
        let args = c.args.iter().map(|arg| lowered.map[arg.0 as usize]).collect();
        let cost = 0.05 * dtype.size() as f64 / 4.0;
        lowered.push(Low::Apply { f, args, cost, arithmetic: Arithmetic::Fused(c.op) }, dtype)
    }

    fn lower_inst(
        &self,
        lowered: &mut Lowered,
        inst: &LoopInst,
        dtype: DType,
    ) -> Result<usize, LaunchError> {
        let low = match inst {
            LoopInst::Scalar(Inst::Input { input, .. }) => Low::Read { read: *input as u16 },
            LoopInst::Scalar(Inst::Index { axis }) => {
                Low::Index { axis: self.nest.axes[*axis as usize] }
            }
            LoopInst::Scalar(Inst::Position) => Low::Position,
            LoopInst::Scalar(Inst::Const(value)) => Low::Constant { bits: value.bits() },
            LoopInst::Scalar(Inst::Op { op, dtype, args }) => {
                return self.lower_op(lowered, *op, *dtype, args);
            }
            LoopInst::Scalar(Inst::Convert { from, to, arg }) => {
                let arg = lowered.map[arg.0 as usize];
                return Ok(self.lower_conversion(lowered, *from, *to, arg));
            }
            LoopInst::Scalar(Inst::Gather { .. }) => {
                return Err(self.malformed("a scalar gather in a loop"));
            }
            LoopInst::Gather { read, index, limit, stride } => {
                let index = lowered.map[index.0 as usize];
                let wide = lowered.insts[index].1 == DType::I64;
                Low::Gather { read: *read as u16, index, wide, limit: *limit, stride: *stride }
            }
            LoopInst::Kept { slot, .. } => Low::Kept { slot: *slot },
            LoopInst::RowScalar { slot, .. } => Low::RowScalar { slot: *slot },
        };
        Ok(lowered.push(low, dtype))
    }

    /// An op in its own type, or in the type that stands in for one without arithmetic of its own: f32 for the 16-bit
    /// floats (rounded after each op), i32 for bool, f64 for functions of integers.
    fn lower_op(
        &self,
        lowered: &mut Lowered,
        op: ScalarOp,
        dtype: DType,
        args: &[Reg],
    ) -> Result<usize, LaunchError> {
        let stand_ins: &[DType] = match dtype {
            DType::F16 | DType::BF16 => &[DType::F32],
            DType::Bool => &[dtype, DType::I32, DType::F64],
            _ if dtype.is_float() => &[dtype],
            _ => &[dtype, DType::F64],
        };
        let found = |&work: &DType| ops::lookup(op, work, self.isa).map(|f| (f, work));
        let Some((f, work)) = stand_ins.iter().find_map(found) else {
            return Err(self.unsupported(format!("{op:?} on {dtype}")));
        };
        let mut args: Vec<usize> = args.iter().map(|arg| lowered.map[arg.0 as usize]).collect();
        for (i, arg) in args.iter_mut().enumerate() {
            if !(op == ScalarOp::Select && i == 0) {
                *arg = self.lower_conversion(lowered, dtype, work, *arg);
            }
        }
        if ops::swapped(op) {
            args.swap(0, 1);
        }
        let arithmetic = Arithmetic::Op(op);
        let apply = Low::Apply { f, args, cost: cost(op, work), arithmetic };
        let result = lowered.push(apply, op.result(work));
        Ok(self.lower_conversion(lowered, op.result(work), op.result(dtype), result))
    }

    fn lower_conversion(&self, lowered: &mut Lowered, from: DType, to: DType, arg: usize) -> usize {
        if from == to {
            return arg;
        }
        let mut at = arg;
        for (f, dtype) in ops::conversion(from, to, self.isa) {
            let arithmetic = Arithmetic::Other;
            at = lowered.push(Low::Apply { f, args: vec![at], cost: 0.1, arithmetic }, dtype);
        }
        at
    }
}

/// Rough nanoseconds an element on one core: only good enough to decide whether a second thread pays.
fn cost(op: ScalarOp, dtype: DType) -> f64 {
    use ScalarOp::*;
    let wide = dtype.size() as f64 / 4.0;
    match op {
        Exp | Expm1 | Log | Tanh | Sqrt | Rsqrt | Div if dtype == DType::F32 => 0.4,
        Sin | Cos | Tan | Log1p | Erf | Pow | Threefry if dtype.size() == 4 => 1.5,
        Exp | Expm1 | Log | Log1p | Sin | Cos | Tan | Tanh | Erf | Pow | Atan2 | Rem => 10.0,
        Div if dtype.is_integer() => 1.0,
        _ => 0.06 * wide,
    }
}

fn register(sink: &Sink) -> usize {
    match sink {
        Sink::Store { reg, .. }
        | Sink::Keep { reg, .. }
        | Sink::Reduce { reg, .. }
        | Sink::SetRow { reg, .. } => reg.0 as usize,
    }
}

fn operands(inst: &LoopInst) -> &[Reg] {
    match inst {
        LoopInst::Scalar(Inst::Op { args, .. }) => args,
        LoopInst::Scalar(Inst::Convert { arg, .. }) => std::slice::from_ref(arg),
        LoopInst::Gather { index, .. } => std::slice::from_ref(index),
        _ => &[],
    }
}

/// How often each register is read by sinks and by registers that are themselves used.
fn count_uses(insts: &[LoopInst], sinks: &[Sink]) -> Vec<u32> {
    let mut uses = vec![0; insts.len()];
    for sink in sinks {
        uses[register(sink)] += 1;
    }
    for at in (0..insts.len()).rev() {
        if uses[at] > 0 {
            for arg in operands(&insts[at]) {
                uses[arg.0 as usize] += 1;
            }
        }
    }
    uses
}

/// A sum and the product in it, as one op.
struct Contraction {
    op: Fused,
    args: [Reg; 3],
    product: usize,
}

/// Sums and differences of f32 and f64 with a product that nothing else uses. Where both operands are such products,
/// the first is taken.
fn contract(insts: &[LoopInst], uses: &[u32]) -> BTreeMap<usize, Contraction> {
    let product = |reg: Reg, wanted: DType| match &insts[reg.0 as usize] {
        LoopInst::Scalar(Inst::Op { op: ScalarOp::Mul, dtype, args })
            if *dtype == wanted && uses[reg.0 as usize] == 1 =>
        {
            Some([args[0], args[1]])
        }
        _ => None,
    };
    let mut found = BTreeMap::new();
    for (at, inst) in insts.iter().enumerate() {
        let LoopInst::Scalar(Inst::Op { op, dtype, args }) = inst else { continue };
        let sum = matches!(op, ScalarOp::Add | ScalarOp::Sub);
        if !sum || !matches!(dtype, DType::F32 | DType::F64) || uses[at] == 0 {
            continue;
        }
        let (x, y) = (args[0], args[1]);
        let contraction = if let Some([a, b]) = product(x, *dtype) {
            let op = if *op == ScalarOp::Add { Fused::MulAdd } else { Fused::MulSub };
            Contraction { op, args: [a, b, y], product: x.0 as usize }
        } else if let Some([a, b]) = product(y, *dtype) {
            let op = if *op == ScalarOp::Add { Fused::MulAdd } else { Fused::SubMul };
            Contraction { op, args: [a, b, x], product: y.0 as usize }
        } else {
            continue;
        };
        found.insert(at, contraction);
    }
    found
}

impl Lowered {
    fn push(&mut self, low: Low, dtype: DType) -> usize {
        self.insts.push((low, dtype));
        self.insts.len() - 1
    }
}

/// The last step, as long as it may grow.
struct Chain {
    f: ChainFn,
    /// The register that it computes.
    tail: usize,
    step: usize,
    micros: Vec<Micro>,
}

/// Hands out slots and writes steps.
struct Emitter<'d, 'a> {
    decoder: &'d mut Decoder<'a>,
    per: Per,
    lowered: Lowered,
    levels: Vec<Level>,
    /// The slot of each lowered register once it is emitted.
    slots: Vec<SlotId>,
    /// The last instruction that reads a register; `usize::MAX` where a drain does.
    last_use: Vec<usize>,
    /// Slots that a register must be computed into.
    targets: BTreeMap<usize, SlotId>,
    /// Block slots that are free again, by element size.
    free: BTreeMap<usize, Vec<SlotId>>,
    /// Registers whose slot goes back to `free` after their last use.
    temporary: Vec<bool>,
    chain: Option<Chain>,
    program: StageProgram,
}

impl<'d, 'a> Emitter<'d, 'a> {
    fn new(decoder: &'d mut Decoder<'a>, per: Per, lowered: Lowered) -> Emitter<'d, 'a> {
        let program = StageProgram {
            per,
            once: Vec::new(),
            tile: Vec::new(),
            block: Vec::new(),
            drains: Vec::new(),
            reductions: Vec::new(),
            cost: 0.0,
        };
        Emitter {
            decoder,
            per,
            lowered,
            levels: Vec::new(),
            slots: Vec::new(),
            last_use: Vec::new(),
            targets: BTreeMap::new(),
            free: BTreeMap::new(),
            temporary: Vec::new(),
            chain: None,
            program,
        }
    }

    fn emit(&mut self, sinks: &[Sink]) -> Result<(), LaunchError> {
        let sources = self.sources(sinks);
        self.set_levels();
        self.find_last_uses(&sources);
        self.choose_targets(sinks, &sources)?;
        for at in 0..self.lowered.insts.len() {
            let slot = self.emit_inst(at)?;
            self.slots.push(slot);
            self.release_operands(at);
        }
        for (sink, &source) in sinks.iter().zip(&sources) {
            self.drain(sink, source)?;
        }
        Ok(())
    }

    /// The lowered register of each sink; sums of 16-bit floats are of f32.
    fn sources(&mut self, sinks: &[Sink]) -> Vec<usize> {
        let mut sources = Vec::with_capacity(sinks.len());
        for sink in sinks {
            let mut source = self.lowered.map[register(sink)];
            let dtype = self.lowered.insts[source].1;
            if matches!(sink, Sink::Reduce { .. }) && matches!(dtype, DType::F16 | DType::BF16) {
                source =
                    self.decoder.lower_conversion(&mut self.lowered, dtype, DType::F32, source);
            }
            sources.push(source);
        }
        sources
    }

    fn set_levels(&mut self) {
        for (low, _) in &self.lowered.insts {
            let level = self.level(low);
            self.levels.push(level);
        }
    }

    fn level(&self, low: &Low) -> Level {
        let long = self.decoder.long();
        let within_tile = if long { Level::Tile } else { Level::Block };
        let by_row = self.per == Per::Row;
        match low {
            Low::Constant { .. } => Level::Once,
            Low::Index { axis: Axis::Single | Axis::Merged } => Level::Once,
            Low::Index { axis: Axis::Columns } if by_row => Level::Once,
            Low::Index { axis: Axis::Columns } => Level::Block,
            Low::Index { axis: Axis::Outer(axis) } => {
                let last = axis + 1 == self.decoder.nest.outer.len();
                if last { within_tile } else { Level::Tile }
            }
            Low::Position if by_row => within_tile,
            Low::Position | Low::Kept { .. } => Level::Block,
            Low::RowScalar { .. } => within_tile,
            Low::Read { read } => self.read_level(*read),
            Low::Gather { read, index, .. } => self.read_level(*read).max(self.levels[*index]),
            Low::Apply { args, .. } => {
                args.iter().map(|&arg| self.levels[arg]).max().unwrap_or(Level::Once)
            }
        }
    }

    fn read_level(&self, read: u16) -> Level {
        let place = &self.decoder.reads[read as usize];
        let columns = self.per == Per::Columns && place.column != 0;
        let rows = !self.decoder.long() && place.row_stride() != 0;
        if columns || rows { Level::Block } else { Level::Tile }
    }

    fn find_last_uses(&mut self, sources: &[usize]) {
        self.last_use = (0..self.lowered.insts.len()).collect();
        for (at, (low, _)) in self.lowered.insts.iter().enumerate() {
            match low {
                Low::Apply { args, .. } => args.iter().for_each(|&arg| self.last_use[arg] = at),
                Low::Gather { index, .. } => self.last_use[*index] = at,
                _ => {}
            }
        }
        for &source in sources {
            self.last_use[source] = usize::MAX;
        }
    }

    /// Lets block functions write straight to where a sink wants the value: a kept buffer, a row slot, or (through a
    /// slot of its own) the array.
    fn choose_targets(&mut self, sinks: &[Sink], sources: &[usize]) -> Result<(), LaunchError> {
        for (sink, &source) in sinks.iter().zip(sources) {
            let (low, dtype) = &self.lowered.insts[source];
            let (computed, dtype) = (matches!(low, Low::Apply { .. }), *dtype);
            let level = self.levels[source];
            let target = match sink {
                Sink::Keep { slot, .. } => {
                    let kept = self.kept_slot(*slot, dtype)?;
                    let read_here = |low: &Low| matches!(low, Low::Kept { slot: s } if s == slot);
                    let free = !self.lowered.insts.iter().any(|(low, _)| read_here(low));
                    (free && level == Level::Block).then_some(kept)
                }
                Sink::SetRow { slot, .. } => {
                    let row = self.row_slot(*slot, dtype)?;
                    let read_here =
                        |low: &Low| matches!(low, Low::RowScalar { slot: s } if s == slot);
                    let free = !self.lowered.insts.iter().any(|(low, _)| read_here(low));
                    let fits = if self.decoder.long() { Level::Tile } else { Level::Block };
                    (free && level == fits).then_some(row)
                }
                Sink::Store { .. } if level == Level::Block => {
                    Some(self.decoder.block_slot(dtype.size()))
                }
                _ => None,
            };
            if let Some(target) = target
                && computed
            {
                self.targets.entry(source).or_insert(target);
            }
        }
        Ok(())
    }

    fn kept_slot(&mut self, number: u32, dtype: DType) -> Result<SlotId, LaunchError> {
        if self.per == Per::Row {
            return Err(self.decoder.malformed("a row stage keeps a value"));
        }
        match self.decoder.kept_slots.get(&number) {
            Some(&(slot, kept)) if kept == dtype => Ok(slot),
            Some(_) => {
                Err(self.decoder.malformed(format!("kept value {number} changes its dtype")))
            }
            None => {
                let slot = self.decoder.block_slot(dtype.size());
                self.decoder.kept_slots.insert(number, (slot, dtype));
                Ok(slot)
            }
        }
    }

    fn row_slot(&mut self, number: u32, dtype: DType) -> Result<SlotId, LaunchError> {
        match self.decoder.row_slots.get(&number) {
            Some(&(slot, scalar)) if scalar == dtype => Ok(slot),
            Some(_) => {
                Err(self.decoder.malformed(format!("row scalar {number} changes its dtype")))
            }
            None => {
                let slot = self.decoder.row_slot(dtype.size());
                self.decoder.row_slots.insert(number, (slot, dtype));
                Ok(slot)
            }
        }
    }

    fn emit_inst(&mut self, at: usize) -> Result<SlotId, LaunchError> {
        let (low, dtype) = self.lowered.insts[at].clone();
        let level = self.levels[at];
        let size = dtype.size();
        self.temporary.push(false);
        let slot = match low {
            Low::Constant { bits } => return Ok(self.constant(size, bits)),
            Low::Index { axis: Axis::Single | Axis::Merged } => return Ok(self.constant(4, 0)),
            Low::Index { axis: Axis::Columns } if self.per == Per::Row => {
                return Ok(self.constant(4, 0));
            }
            Low::Kept { slot } => return Ok(self.decoder.kept_slots[&slot].0),
            Low::RowScalar { slot } => {
                let row = self.decoder.row_slots[&slot].0;
                if self.decoder.long() || self.per == Per::Row {
                    return Ok(row);
                }
                let slot = self.temporary(at, size);
                self.push(level, Step::Spread { row, slot, size: size as u8 });
                slot
            }
            Low::Read { read } if level == Level::Block => {
                // A slot of its own: it may point into the array, and is home to the odd end of a row.
                let slot = self.decoder.block_slot(size);
                self.push(level, Step::Load { read, slot });
                slot
            }
            Low::Read { read } => {
                let slot = self.decoder.splat_slot(size);
                self.push(level, Step::Splat { read, slot });
                slot
            }
            Low::Gather { read, index, wide, limit, stride } => {
                super::access::widen(&mut self.decoder.reads[read as usize].span, limit, stride);
                let slot = self.output(at, level, size);
                let index = self.slots[index];
                self.push(level, Step::Gather { read, index, wide, slot, limit, stride });
                self.program.cost += 1.0;
                slot
            }
            Low::Index { axis: Axis::Columns } => {
                let slot = self.output(at, level, size);
                self.push(level, Step::Column { slot });
                slot
            }
            Low::Index { axis: Axis::Outer(axis) } => {
                let slot = self.output(at, level, size);
                self.push(level, Step::Outer { axis: axis as u16, slot });
                slot
            }
            Low::Position => {
                let slot = self.output(at, level, size);
                self.push(level, Step::Position { slot });
                slot
            }
            Low::Apply { f, args, cost, arithmetic } => {
                if level == Level::Block {
                    self.program.cost += cost;
                    if let Some(out) = self.extend_chain(at, &args, arithmetic) {
                        return Ok(out);
                    }
                }
                let out = self.output(at, level, size);
                let mut slots = [0; 3];
                for (slot, &arg) in slots.iter_mut().zip(&args) {
                    *slot = self.slots[arg];
                }
                self.push(level, Step::Apply { f, out, args: slots });
                if level == Level::Block {
                    self.begin_chain(at, &slots[..args.len()], arithmetic);
                }
                out
            }
        };
        Ok(slot)
    }

    /// Remembers the step that was just pushed as one that a chain can begin with.
    fn begin_chain(&mut self, at: usize, slots: &[SlotId], arithmetic: Arithmetic) {
        self.chain = None;
        let dtype = self.lowered.insts[at].1;
        let (Some(kind), Some(f)) =
            (arithmetic.continues(0), chain::function(dtype, self.decoder.isa))
        else {
            return;
        };
        let first = Micro { kind: Kind::Load, a: slots[0], b: slots[0] };
        let operand = |i: usize| slots.get(i).copied().unwrap_or(slots[0]);
        let second = Micro { kind, a: operand(1), b: operand(2) };
        let step = self.program.block.len() - 1;
        self.chain = Some(Chain { f, tail: at, step, micros: vec![first, second] });
    }

    /// Makes an op part of the chain before it, when it is the only one to use the chain's value; gives its slot.
    fn extend_chain(
        &mut self,
        at: usize,
        args: &[usize],
        arithmetic: Arithmetic,
    ) -> Option<SlotId> {
        let chain = self.chain.as_ref()?;
        let (tail, step) = (chain.tail, chain.step);
        let position = args.iter().position(|&arg| arg == tail)?;
        let once = args.iter().filter(|&&arg| arg == tail).count() == 1;
        let loads = |step: &Step| matches!(step, Step::Load { .. });
        if !once
            || !self.temporary[tail]
            || self.last_use[tail] != at
            || self.lowered.insts[tail].1 != self.lowered.insts[at].1
            || !self.program.block[step + 1..].iter().all(loads)
        {
            return None;
        }
        let kind = arithmetic.continues(position)?;
        let mut chain = self.chain.take()?;
        let others: Vec<SlotId> =
            args.iter().filter(|&&arg| arg != tail).map(|&arg| self.slots[arg]).collect();
        let first = others.first().copied().unwrap_or(self.slots[tail]);
        chain.micros.push(Micro { kind, a: first, b: others.get(1).copied().unwrap_or(first) });
        let out = match self.targets.get(&at) {
            Some(&target) => target,
            // The value stays where it is, under the new register's name.
            None => {
                (self.temporary[tail], self.temporary[at]) = (false, true);
                self.slots[tail]
            }
        };
        // Behind the loads that came in between, which never touch a temporary slot.
        self.program.block.remove(step);
        self.program.block.push(Step::Chain { f: chain.f, out, micros: chain.micros.clone() });
        self.chain = Some(Chain { tail: at, step: self.program.block.len() - 1, ..chain });
        Some(out)
    }

    fn push(&mut self, level: Level, step: Step) {
        match level {
            Level::Once => self.program.once.push(step),
            Level::Tile => self.program.tile.push(step),
            Level::Block => self.program.block.push(step),
        }
    }

    fn constant(&mut self, size: usize, bits: u64) -> SlotId {
        if let Some(&slot) = self.decoder.constants.get(&(size, bits)) {
            return slot;
        }
        let slot = self.decoder.splat_slot(size);
        self.decoder.constants.insert((size, bits), slot);
        slot
    }

    fn output(&mut self, at: usize, level: Level, size: usize) -> SlotId {
        match self.targets.get(&at) {
            Some(&target) => target,
            None if level == Level::Block => self.temporary(at, size),
            None => self.decoder.splat_slot(size),
        }
    }

    fn temporary(&mut self, at: usize, size: usize) -> SlotId {
        self.temporary[at] = true;
        let free = self.free.get_mut(&size).and_then(Vec::pop);
        free.unwrap_or_else(|| self.decoder.block_slot(size))
    }

    /// An output is taken before its operands are given back, so the two never share a slot.
    fn release_operands(&mut self, at: usize) {
        let mut operands = match &self.lowered.insts[at].0 {
            Low::Apply { args, .. } => args.clone(),
            Low::Gather { index, .. } => vec![*index],
            _ => return,
        };
        operands.sort_unstable();
        operands.dedup();
        for arg in operands {
            if self.temporary[arg] && self.last_use[arg] == at {
                let size = self.lowered.insts[arg].1.size();
                self.free.entry(size).or_default().push(self.slots[arg]);
            }
        }
    }

    fn drain(&mut self, sink: &Sink, source: usize) -> Result<(), LaunchError> {
        let dtype = self.lowered.insts[source].1;
        let slot = self.slots[source];
        let target = self.targets.get(&source).copied();
        let drain = match sink {
            Sink::Store { write, .. } => {
                match self.decoder.write_types.get(*write as usize) {
                    Some(&wanted) if wanted == dtype => {}
                    Some(wanted) => {
                        let what = format!("a {dtype} is stored to an array of {wanted}");
                        return Err(self.decoder.malformed(what));
                    }
                    None => {
                        return Err(self.decoder.malformed(format!("there is no write {write}")));
                    }
                }
                // Only a slot that is no kept buffer or row slot may point at the array, and only at one.
                let own = target == Some(slot) && !self.is_shared(slot) && !self.is_stored(slot);
                Drain::Store { write: *write as u16, slot, direct: own }
            }
            Sink::Keep { slot: number, .. } => {
                let kept = self.kept_slot(*number, dtype)?;
                Drain::Keep { kept, slot }
            }
            Sink::SetRow { slot: number, .. } => {
                let row = self.row_slot(*number, dtype)?;
                Drain::SetRow { row, slot, size: dtype.size() as u8 }
            }
            Sink::Reduce { kind, slot: number, .. } => {
                return self.drain_reduce(*kind, *number, sink, source);
            }
        };
        self.program.drains.push(drain);
        Ok(())
    }

    fn is_shared(&self, slot: SlotId) -> bool {
        let kept = self.decoder.kept_slots.values().any(|&(kept, _)| kept == slot);
        kept || self.decoder.row_slots.values().any(|&(row, _)| row == slot)
    }

    fn is_stored(&self, slot: SlotId) -> bool {
        let stores = |drain: &Drain| matches!(drain, Drain::Store { slot: s, .. } if *s == slot);
        self.program.drains.iter().any(stores)
    }

    fn drain_reduce(
        &mut self,
        kind: vramlab_ir::ReduceKind,
        number: u32,
        sink: &Sink,
        source: usize,
    ) -> Result<(), LaunchError> {
        let source_dtype = self.lowered.insts[source].1;
        let Some(reducer) = Reducer::new(kind, source_dtype, self.decoder.isa) else {
            return Err(self.decoder.unsupported(format!("{kind:?} over {source_dtype}")));
        };
        if self.per == Per::Row {
            return Err(self.decoder.malformed("a row stage reduces over columns"));
        }
        let slot = self.varying(source);
        let array_dtype = self.lowered.insts[self.lowered.map[register(sink)]].1;
        let result = if reducer.arg { DType::I32 } else { array_dtype };
        let own = if reducer.arg { DType::I32 } else { reducer.dtype };
        let row = self.row_slot(number, result)?;
        let mut reduction = Reduction { reducer, row, after: Vec::new() };
        if own != result {
            reduction.row = self.decoder.row_slot(own.size());
            let mut at = reduction.row;
            let chain = ops::conversion(own, result, self.decoder.isa);
            let steps = chain.len();
            for (i, (f, dtype)) in chain.into_iter().enumerate() {
                let last = i + 1 == steps;
                let out = if last { row } else { self.decoder.row_slot(dtype.size()) };
                reduction.after.push(Step::Apply { f, out, args: [at, 0, 0] });
                at = out;
            }
        }
        self.program.cost += 0.06;
        self.program.reductions.push(reduction);
        let reduce = self.program.reductions.len() as u16 - 1;
        self.program.drains.push(Drain::Reduce { reduce, slot });
        Ok(())
    }

    /// A slot with a value of its own for every lane: splats are spread first.
    fn varying(&mut self, source: usize) -> SlotId {
        let slot = self.slots[source];
        if self.levels[source] == Level::Block {
            return slot;
        }
        let size = self.lowered.insts[source].1.size();
        let out = self.decoder.block_slot(size);
        let f = ops::copy(size, self.decoder.isa);
        self.program.block.push(Step::Apply { f, out, args: [slot, 0, 0] });
        out
    }
}

impl Decoder<'_> {
    /// Constants with the slots that hold them: (slot, bytes of an element, bits).
    pub fn constants(&self) -> Vec<(SlotId, usize, u64)> {
        self.constants.iter().map(|(&(size, bits), &slot)| (slot, size, bits)).collect()
    }
}
