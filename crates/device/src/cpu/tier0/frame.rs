//! The state of one thread that runs a program: its block buffers, and where it stands in the loop.

use super::access::Place;
use super::copy::{
    Tile, copy_in, copy_out, copy_past_cache, fill_out, load_bits, settle, store_bits,
};
use super::lanes::{CHUNK, Operand};
use super::step::{Drain, Slot, SlotId, Step};
use std::cell::Cell;
use vramlab_ir::kernel::Per;

/// What a frame needs to know of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub slots: Vec<Slot>,
    /// Bytes of the slots' homes.
    pub bytes: usize,
    /// (slot, bytes of an element, bits)
    pub constants: Vec<(SlotId, usize, u64)>,
    /// Steps that run once a launch.
    pub once: Vec<Step>,
    pub columns: usize,
}

/// Where the arrays of a launch lie: pointers to the elements at coordinates 0.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub reads: Vec<*mut u8>,
    pub writes: Vec<*mut u8>,
    /// A written buffer overlaps a read one: nothing is written before all is read.
    pub aliased: bool,
    /// The reads are larger than the second-level cache: what lies ahead is fetched during long work.
    pub far: bool,
    /// The results are larger than the last-level cache: they are written past it.
    pub past: bool,
}

// SAFETY: the pointers are to device memory, which outlives the launch; threads write to disjoint elements.
unsafe impl Sync for Bound {}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    /// Block buffers are kept from launch to launch: a small kernel should not pay for fresh ones.
    static SPARE: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Larger buffers go back to the system after use.
const SPARE_LINES: usize = 1 << 20 >> 6;

/// See the module.
pub(super) struct Frame<'p> {
    layout: &'p Layout,
    memory: Vec<Line>,
    pub slots: Vec<Operand>,
    reads: &'p [Place],
    writes: &'p [Place],
    bound: &'p Bound,
    /// Pointers to column 0 of the tile's first row.
    read_rows: Vec<*mut u8>,
    write_rows: Vec<*mut u8>,
    /// The first row's coordinates along the outer dimensions.
    coordinates: Vec<usize>,
    /// The first row's number.
    row: usize,
    pub tile: Tile,
    /// The row was read before by an earlier stage: what comes next is the next row.
    pub again: bool,
    /// What comes next in the arrays that were last loaded.
    ahead: [Operand; 2],
    /// Slots that point at the array they were loaded from, where writes may reach it.
    in_place: Vec<SlotId>,
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        if self.bound.past {
            settle();
        }
        let memory = std::mem::take(&mut self.memory);
        if memory.len() <= SPARE_LINES {
            SPARE.set(memory);
        }
    }
}

impl<'p> Frame<'p> {
    /// A frame with `extra` bytes behind the slots, constants filled in.
    pub fn new(
        layout: &'p Layout,
        reads: &'p [Place],
        writes: &'p [Place],
        bound: &'p Bound,
        extra: usize,
    ) -> Frame<'p> {
        let mut memory = SPARE.take();
        let lines = (layout.bytes + extra).div_ceil(64);
        if memory.len() < lines {
            memory.resize(lines, Line([0; 64]));
        }
        let base: *mut u8 = memory.as_mut_ptr().cast();
        let home = |slot: &Slot| Operand { ptr: base.wrapping_add(slot.offset), step: slot.step };
        let mut frame = Frame {
            layout,
            slots: layout.slots.iter().map(home).collect(),
            memory,
            reads,
            writes,
            bound,
            read_rows: bound.reads.clone(),
            write_rows: bound.writes.clone(),
            coordinates: Vec::new(),
            row: 0,
            tile: Tile::default(),
            again: false,
            ahead: [Operand::NONE; 2],
            in_place: Vec::new(),
        };
        for &(slot, size, bits) in &layout.constants {
            frame.splat(slot, size, bits);
        }
        frame.run(&layout.once);
        frame
    }

    /// The bytes behind the slots.
    pub fn extra(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(self.layout.bytes)
    }

    /// The frame's own buffer of a slot.
    pub fn home(&mut self, slot: SlotId) -> *mut u8 {
        let offset = self.layout.slots[slot as usize].offset;
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(offset)
    }

    /// Stands at a row. `outer` are the nest's outer extents.
    pub fn go_to_row(&mut self, row: usize, outer: &[usize]) {
        self.row = row;
        self.coordinates.resize(outer.len(), 0);
        let mut rest = row;
        for (coordinate, &extent) in self.coordinates.iter_mut().zip(outer).rev() {
            *coordinate = rest % extent.max(1);
            rest /= extent.max(1);
        }
        for (i, place) in self.reads.iter().enumerate() {
            self.read_rows[i] = at_row(self.bound.reads[i], place, &self.coordinates);
        }
        for (i, place) in self.writes.iter().enumerate() {
            self.write_rows[i] = at_row(self.bound.writes[i], place, &self.coordinates);
        }
    }

    /// Column 0 of a read's row.
    pub fn read_row(&self, read: usize) -> *const u8 {
        self.read_rows[read]
    }

    /// Reads from a copy of the row instead.
    pub fn set_read_row(&mut self, read: usize, row: *mut u8) {
        self.read_rows[read] = row;
    }

    /// Fills a splat slot's chunk with one value.
    pub fn splat(&mut self, slot: SlotId, size: usize, bits: u64) {
        let out = self.home(slot);
        // SAFETY: a slot holds at least one chunk of elements of its size.
        unsafe {
            match size {
                1 => *out.cast::<[u8; CHUNK]>() = [bits as u8; CHUNK],
                2 => *out.cast::<[u16; CHUNK]>() = [bits as u16; CHUNK],
                4 => *out.cast::<[u32; CHUNK]>() = [bits as u32; CHUNK],
                _ => *out.cast::<[u64; CHUNK]>() = [bits; CHUNK],
            }
        }
    }

    /// The first lane of a slot, as bits.
    pub fn first(&self, slot: SlotId, size: usize) -> u64 {
        // SAFETY: every slot points at one element at least.
        unsafe { load_bits(self.slots[slot as usize].ptr, size) }
    }

    /// Runs steps on the tile.
    pub fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Apply { f, out, args } => self.apply(f, out, args),
                Step::Slow { f, out, arg } => self.apply_slow(f, out, arg),
                Step::Chain { f, out, ref micros } => {
                    let target = self.slots[out as usize].ptr.cast_mut();
                    // SAFETY: as in `apply`; chains read an element before they write it.
                    unsafe { f(target, self.slots.as_ptr(), micros, self.tile.chunks()) };
                }
                Step::Load { read, slot } => self.load(read, slot),
                Step::Splat { read, slot } => {
                    let place = &self.reads[read as usize];
                    // SAFETY: the element was found to lie in its buffer.
                    let bits = unsafe { load_bits(self.read_rows[read as usize], place.size) };
                    self.splat(slot, place.size, bits);
                }
                Step::Gather { read, index, wide, slot, limit, stride } => {
                    self.gather(read, index, wide, slot, (limit, stride));
                }
                Step::Column { slot } => {
                    let first = self.tile.first_column;
                    self.fill_by_lane(slot, |_, column| (first + column) as u32);
                }
                Step::Outer { axis, slot } => {
                    let first = self.coordinates[axis as usize];
                    self.fill_by_lane(slot, |row, _| (first + row) as u32);
                }
                Step::Position { slot } => {
                    let (columns, first) = (self.layout.columns, self.tile.first_column);
                    let row0 = self.row;
                    self.fill_by_lane(slot, |row, column| {
                        (row0 + row).wrapping_mul(columns).wrapping_add(first + column) as u32
                    });
                }
                Step::Spread { row, slot, size } => self.spread(row, slot, size as usize),
            }
        }
    }

    #[inline]
    fn apply(&mut self, f: super::lanes::BlockFn, out: SlotId, args: [SlotId; 3]) {
        let target = self.slots[out as usize];
        let operands = args.map(|arg| self.slots[arg as usize]);
        let chunks = if target.step == 0 { 1 } else { self.tile.chunks() };
        // SAFETY: slots hold whole chunks up to a block, the types were checked when the step was made, an output
        // never shares its slot with an operand, and arrays that overlap are never written in place.
        unsafe { f(target.ptr.cast_mut(), &operands, chunks) };
    }

    fn apply_slow(&mut self, f: super::lanes::BlockFn, out: SlotId, arg: SlotId) {
        let target = self.slots[out as usize];
        let args = [self.slots[arg as usize], self.ahead[0], self.ahead[1]];
        self.ahead = [Operand::NONE; 2];
        let chunks = if target.step == 0 { 1 } else { self.tile.chunks() };
        // SAFETY: as in `apply`.
        unsafe { f(target.ptr.cast_mut(), &args, chunks) };
    }

    fn load(&mut self, read: u16, slot: SlotId) {
        let place = &self.reads[read as usize];
        let tile = self.tile;
        let column = tile.first_column as isize * place.column * place.size as isize;
        let from = self.read_rows[read as usize].wrapping_offset(column);
        let step = place.size * CHUNK;
        if tile.is_whole() && place.is_dense(tile.rows, tile.columns) {
            self.slots[slot as usize] = Operand { ptr: from, step };
            if self.bound.aliased && !self.in_place.contains(&slot) {
                self.in_place.push(slot);
            }
            if self.bound.far {
                let next = if self.again { place.row_stride() } else { tile.lanes() as isize };
                let ptr = from.wrapping_offset(next * place.size as isize);
                self.ahead = [Operand { ptr, step }, self.ahead[0]];
            }
            return;
        }
        self.in_place.retain(|&loaded| loaded != slot);
        let home = self.home(slot);
        self.slots[slot as usize] = Operand { ptr: home, step };
        let strides = (place.row_stride(), place.column);
        // SAFETY: the access was found to lie in its buffer, and a slot's home holds a block.
        unsafe { copy_in(home, from, tile, strides, place.size) };
    }

    fn gather(&mut self, read: u16, index: SlotId, wide: bool, slot: SlotId, reach: (i64, isize)) {
        let place = &self.reads[read as usize];
        let (tile, size) = (self.tile, place.size);
        let column = tile.first_column as isize * place.column * size as isize;
        let from = self.read_rows[read as usize].wrapping_offset(column);
        let indices = self.slots[index as usize];
        let jump = |lane: usize| {
            // SAFETY: the slot holds an index for each lane of the tile, or one.
            let index = unsafe {
                match wide {
                    true => *indices.ptr.cast::<i64>().add(lane),
                    false => *indices.ptr.cast::<i32>().add(lane) as i64,
                }
            };
            index.clamp(0, reach.0.max(0)) as isize * reach.1 * size as isize
        };
        if self.layout.slots[slot as usize].step == 0 {
            // SAFETY: the index is clamped, and the span that was checked covers its whole reach.
            let bits = unsafe { load_bits(from.wrapping_offset(jump(0)), size) };
            self.splat(slot, size, bits);
            return;
        }
        let out = self.slots[slot as usize].ptr.cast_mut();
        let strides = (place.row_stride(), place.column);
        if indices.step == 0 {
            // SAFETY: as above; the slot holds the tile's lanes.
            unsafe { copy_in(out, from.wrapping_offset(jump(0)), tile, strides, size) };
            return;
        }
        for row in 0..tile.rows {
            for column in 0..tile.columns {
                let lane = row * tile.columns + column;
                let offset = row as isize * strides.0 + column as isize * strides.1;
                // SAFETY: as above.
                unsafe {
                    let element = from.wrapping_offset(offset * size as isize + jump(lane));
                    let bits = load_bits(element, size);
                    store_bits(out.wrapping_add(lane * size), size, bits);
                }
            }
        }
    }

    /// Fills a slot of 32-bit values by (row in the tile, column in the tile).
    pub fn fill_by_lane(&mut self, slot: SlotId, value: impl Fn(usize, usize) -> u32) {
        if self.layout.slots[slot as usize].step == 0 {
            self.splat(slot, 4, value(0, 0) as u64);
            return;
        }
        let out = self.slots[slot as usize].ptr.cast_mut().cast::<u32>();
        let Tile { rows, columns, .. } = self.tile;
        for row in 0..rows {
            for column in 0..columns {
                // SAFETY: a block slot holds all lanes of a tile.
                unsafe { *out.add(row * columns + column) = value(row, column) };
            }
        }
    }

    fn spread(&mut self, row: SlotId, slot: SlotId, size: usize) {
        let (from, to) = (self.slots[row as usize].ptr, self.slots[slot as usize].ptr.cast_mut());
        // SAFETY: the row slot holds a value for each row of the tile, the other slot all lanes.
        unsafe { copy_in(to, from, self.tile, (1, 0), size) };
    }

    /// Lets the slots of direct stores point at their arrays, where this tile allows it.
    pub fn aim(&mut self, drains: &[Drain]) {
        for drain in drains {
            let Drain::Store { write, slot, direct: true } = *drain else { continue };
            let place = &self.writes[write as usize];
            let tile = self.tile;
            let in_place =
                !self.bound.aliased && tile.is_whole() && place.is_dense(tile.rows, tile.columns);
            let ptr = if in_place { self.target(write) } else { self.home(slot) };
            self.slots[slot as usize].ptr = ptr;
        }
    }

    fn target(&self, write: u16) -> *mut u8 {
        let place = &self.writes[write as usize];
        let column = self.tile.first_column as isize * place.column * place.size as isize;
        self.write_rows[write as usize].wrapping_offset(column)
    }

    /// A loaded slot may point at its array. Before anything is written to an array that overlaps
    /// it, what is still to be read from there comes home.
    pub fn bring_home(&mut self, drains: &[Drain]) {
        if !self.bound.aliased {
            return;
        }
        for drain in drains {
            let (Drain::Store { slot, .. }
            | Drain::Keep { slot, .. }
            | Drain::SetRow { slot, .. }
            | Drain::Reduce { slot, .. }) = *drain;
            let Some(at) = self.in_place.iter().position(|&loaded| loaded == slot) else {
                continue;
            };
            self.in_place.swap_remove(at);
            let Operand { ptr, step } = self.slots[slot as usize];
            let home = self.home(slot);
            if ptr == home.cast_const() {
                continue;
            }
            // SAFETY: the slot points at the tile's whole chunks, its home holds a block, and homes
            // are no device memory.
            unsafe { home.copy_from_nonoverlapping(ptr, step * self.tile.chunks()) };
            self.slots[slot as usize].ptr = home;
        }
    }

    /// Writes a slot to an array, unless it was computed there.
    pub fn store(&mut self, write: u16, slot: SlotId) {
        let to = self.target(write);
        let from = self.slots[slot as usize];
        if from.ptr == to {
            return;
        }
        let place = &self.writes[write as usize];
        let tile = self.tile;
        let bytes = tile.lanes() * place.size;
        let whole = place.is_dense(tile.rows, tile.columns) && bytes.is_multiple_of(64);
        // SAFETY: the access was found to lie in its buffer; the slot holds the tile's lanes, or one chunk of equal
        // ones.
        unsafe {
            if self.bound.past && whole && from.step != 0 && to.addr().is_multiple_of(16) {
                copy_past_cache(to, from.ptr, bytes);
            } else if from.step == 0 {
                fill_out(to, from.ptr, tile, (place.row_stride(), place.column), place.size);
            } else {
                copy_out(to, from.ptr, tile, (place.row_stride(), place.column), place.size);
            }
        }
    }

    /// Copies a slot into another slot's buffer, spreading a splat.
    pub fn copy_slot(&mut self, to: SlotId, from: SlotId, size: usize) {
        let (target, source) = (self.slots[to as usize], self.slots[from as usize]);
        if target.ptr == source.ptr {
            return;
        }
        if target.step == 0 {
            let bits = self.first(from, size);
            self.splat(to, size, bits);
            return;
        }
        for chunk in 0..self.tile.chunks() {
            // SAFETY: both slots hold the tile's chunks, and a splat one.
            unsafe {
                let from = source.ptr.add(chunk * source.step);
                let to = target.ptr.cast_mut().add(chunk * target.step);
                std::ptr::copy(from, to, size * CHUNK);
            }
        }
    }

    /// Sets the lanes behind the tile's last one, up to a whole chunk.
    pub fn pad(&mut self, slot: SlotId, size: usize, bits: u64) {
        let lanes = self.tile.lanes();
        let ptr = self.slots[slot as usize].ptr.cast_mut();
        for lane in lanes..lanes.next_multiple_of(CHUNK) {
            // SAFETY: a tile that is not whole lies in slots' homes, which hold whole chunks.
            unsafe { store_bits(ptr.add(lane * size), size, bits) };
        }
    }

    /// The tile of a stage: all of it, or column 0 for a row stage.
    pub fn set_tile(&mut self, per: Per, tile: Tile) {
        self.tile = match per {
            Per::Columns => tile,
            Per::Row => Tile { rows: tile.rows, columns: 1, first_column: 0 },
        };
    }
}

fn at_row(origin: *mut u8, place: &Place, coordinates: &[usize]) -> *mut u8 {
    let steps = coordinates.iter().zip(&place.outer);
    let offset: isize = steps.map(|(&at, &stride)| at as isize * stride).sum();
    origin.wrapping_offset(offset * place.size as isize)
}
