//! What a decoded stage is made of: slots, steps, drains.

use super::chain::{ChainFn, Micro};
use super::lanes::BlockFn;
use super::reduce::Reducer;
use vramlab_ir::kernel::Per;

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
    /// A block function that fetches what lies ahead of the arrays that were loaded.
    Slow { f: BlockFn, out: SlotId, arg: SlotId },
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
