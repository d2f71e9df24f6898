//! A stage's instructions made into steps: block functions over numbered slots.
//!
//! A slot is a buffer of the frame (or, for a moment, memory of an array that is read or written in place). Values that
//! are the same for a whole launch or a whole tile are computed there once, as one chunk; only what varies is computed
//! block by block, in few buffers that are used again and again. Three parts: here, what stages share and the check of
//! an image's types; [`super::lower`] spells out 16-bit arithmetic and contracts products with sums; [`super::emit`]
//! hands out slots and writes steps.

use super::access::{Axis, Nest, Place};
use super::emit::Emitter;
use super::lanes::{BLOCK, CHUNK};
use super::lower::register;
use super::step::{Slot, SlotId, StageProgram};
use crate::LaunchError;
use crate::cpu::isa::Isa;
use std::collections::BTreeMap;
use vramlab_ir::kernel::{LoopInst, Per, Sink};
use vramlab_ir::{DType, Inst, Reg, ScalarOp};

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
    pub(super) constants: BTreeMap<(usize, u64), SlotId>,
    /// Slots of row scalars by number, with their dtype.
    pub row_slots: BTreeMap<u32, (SlotId, DType)>,
    /// Slots of kept values by number, with the dtype.
    pub kept_slots: BTreeMap<u32, (SlotId, DType)>,
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

    pub fn unsupported(&self, what: impl Into<String>) -> LaunchError {
        LaunchError::Unsupported { kernel: self.kernel.to_owned(), what: what.into() }
    }

    pub fn long(&self) -> bool {
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
    pub fn row_slot(&mut self, size: usize) -> SlotId {
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
        let program = emitter.program;
        if self.slots.len() > SlotId::MAX as usize || self.reads.len() > u16::MAX as usize {
            return Err(self.unsupported(format!("{} instructions in one stage", insts.len())));
        }
        Ok(program)
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

    /// Constants with the slots that hold them: (slot, bytes of an element, bits).
    pub fn constants(&self) -> Vec<(SlotId, usize, u64)> {
        self.constants.iter().map(|(&(size, bits), &slot)| (slot, size, bits)).collect()
    }
}
