//! Row loops: maps, and reductions along rows in stages.
//!
//! Long rows are cut into blocks; of short rows as many as fill a block are worked on together. Which of the two, and
//! how reductions are cut, follows from the shape alone.

use super::access::{self, Nest, Place};
use super::copy::{Tile, turn_rows};
use super::decode::Decoder;
use super::frame::{Bound, Frame, Layout};
use super::lanes::{BLOCK, CHUNK, Operand};
use super::reduce::{LANES_BYTES, PIECE, Partial, Reducer, tree};
use super::step::{Drain, SlotId, StageProgram};
use super::{Ready, bind_all, cancelled};
use crate::LaunchError;
use crate::cpu::isa::Isa;
use crate::cpu::pool::Pool;
use crate::cpu::space::DevicePtr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use vramlab_ir::kernel::{LoopInst, Per, RowLoop, Sink, Stage};
use vramlab_ir::{Inst, Kernel};

/// Rows up to this length share blocks.
pub(super) const SHORT: usize = 128;
/// Rows of a tile where an array lies dense along rows and not along columns: one cache line of f32.
const ACROSS: usize = 16;
/// Tiles that follow each other downwards before the next columns are taken.
const DOWN: usize = 16;
/// Elements of one task.
const TASK: usize = 64 * 1024;

/// A decoded row loop.
#[derive(Debug)]
pub(super) struct Rows {
    nest: Nest,
    reads: Vec<Place>,
    writes: Vec<Place>,
    stages: Vec<StageProgram>,
    layout: Layout,
    tile_rows: usize,
    tile_columns: usize,
    /// Reads that are copied into rows before use, because they lie dense across the rows.
    turned: Vec<usize>,
    /// The reads as they are then.
    turned_reads: Vec<Place>,
    /// Kept values: slot and bytes of an element.
    kept: Vec<(SlotId, usize)>,
    /// Row scalars, for rows that several threads share.
    scalars: Vec<(SlotId, usize)>,
    /// Rough nanoseconds of one run.
    cost: f64,
}

impl Rows {
    pub fn new(kernel: &Kernel, image: &RowLoop, isa: Isa) -> Result<Rows, LaunchError> {
        let mut extents = image.outer.clone();
        extents.push(image.columns);
        super::check_ranks(kernel, image.reads.iter().chain(&image.writes), extents.len())?;
        let flat = image.stages.len() == 1 && is_map(&image.stages[0]);
        let keep: Vec<bool> = (0..extents.len())
            .map(|axis| image.stages.iter().any(|s| asks_for(&s.insts, axis)))
            .collect();
        let accesses: Vec<_> = image.reads.iter().chain(&image.writes).collect();
        let (mut nest, mut reads) = access::simplify(&extents, &accesses, &keep, flat);
        if image.columns == 0 {
            for (i, place) in reads.iter_mut().enumerate() {
                if touched_by_row(image, i) {
                    place.span = access::span_of_rows(place, &nest);
                }
            }
        }
        let across = !asks_for_position(image) && access::turn_rows(&mut nest, &mut reads);
        let writes = reads.split_off(image.reads.len());
        let last = nest.outer[nest.outer.len() - 1];
        let short = (1..=SHORT).contains(&nest.columns) && last > 1;
        let (tile_rows, tile_columns) = match () {
            _ if short => (rows_of_tile(nest.columns, last), nest.columns),
            _ if across && flat => (ACROSS.min(last), BLOCK / ACROSS),
            _ => (1, nest.columns),
        };
        let write_types: Vec<_> = writes.iter().map(|place| place.dtype).collect();
        let mut decoder =
            Decoder::new(&kernel.name, isa, &nest, &mut reads, &write_types, tile_rows);
        let mut stages = Vec::with_capacity(image.stages.len());
        for stage in &image.stages {
            stages.push(decoder.stage(stage.per, &stage.insts, &stage.sinks)?);
        }
        let slots = |map: &std::collections::BTreeMap<u32, (SlotId, vramlab_ir::DType)>| {
            map.values().map(|&(slot, dtype)| (slot, dtype.size())).collect::<Vec<_>>()
        };
        let (kept, scalars) = (slots(&decoder.kept_slots), slots(&decoder.row_slots));
        let layout = Layout {
            constants: decoder.constants(),
            bytes: decoder.frame_bytes,
            slots: decoder.slots,
            once: stages.iter_mut().flat_map(|stage| std::mem::take(&mut stage.once)).collect(),
            columns: nest.columns,
        };
        let turned =
            if across && tile_rows == 1 { turned(image, &reads, &nest) } else { Vec::new() };
        let mut turned_reads = reads.clone();
        for &read in &turned {
            turned_reads[read].column = 1;
        }
        let elements = nest.outer.iter().product::<usize>() as f64 * nest.columns as f64;
        let traffic: usize = reads.iter().chain(&writes).map(|place| place.size).sum();
        let each = stages.iter().map(|stage| stage.cost).sum::<f64>() + traffic as f64 * 0.04;
        Ok(Rows {
            nest,
            reads,
            writes,
            stages,
            layout,
            tile_rows,
            tile_columns,
            turned,
            turned_reads,
            kept,
            scalars,
            cost: elements * each,
        })
    }

    pub fn code_bytes(&self) -> usize {
        let steps =
            |stage: &StageProgram| stage.tile.len() + stage.block.len() + stage.drains.len();
        self.stages.iter().map(steps).sum::<usize>() * 48 + self.layout.slots.len() * 16
    }

    pub fn scratch_bytes(&self) -> usize {
        self.layout.bytes + self.kept_bytes() + self.turned_bytes()
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let bound = bind_all(&self.reads, &self.writes, buffers, ready.kernel)?;
        let rows: usize = self.nest.outer.iter().product();
        if rows == 0 {
            return Ok(());
        }
        let run = Run { rows: self, bound, cancel: ready.cancel };
        if self.tile_rows > 1 {
            run.short(ready);
        } else if self.is_flat() {
            run.map(ready);
        } else if self.cost > super::PARALLEL_NS
            && rows < ready.pool.threads()
            && self.nest.columns > 2 * PIECE
        {
            run.shared_rows(ready.pool);
        } else {
            run.long(ready);
        }
        cancelled(ready.cancel)
    }

    /// Whether columns can be cut anywhere: one stage that only stores.
    fn is_flat(&self) -> bool {
        let store = |drain: &Drain| matches!(drain, Drain::Store { .. });
        self.stages.len() == 1
            && self.stages[0].per == Per::Columns
            && self.stages[0].drains.iter().all(store)
    }

    /// Bytes of one row of kept values in the long mode.
    fn kept_bytes(&self) -> usize {
        if self.tile_rows > 1 {
            return 0;
        }
        self.kept.iter().map(|&(_, size)| self.kept_row(size)).sum()
    }

    fn kept_row(&self, size: usize) -> usize {
        // A line more, so that rows of a power of two do not share cache sets.
        (self.nest.columns * size).next_multiple_of(BLOCK * 8) + 64
    }

    /// Bytes of the copies of turned reads: a few rows of each.
    fn turned_bytes(&self) -> usize {
        self.turned.iter().map(|&read| self.turned_row(read) * ACROSS).sum()
    }

    fn turned_row(&self, read: usize) -> usize {
        // A line more: see `kept_row`.
        (self.nest.columns * self.reads[read].size).next_multiple_of(64) + 64
    }

    fn most_reductions(&self) -> usize {
        self.stages.iter().map(|stage| stage.reductions.len()).max().unwrap_or(0)
    }
}

fn is_map(stage: &Stage) -> bool {
    let store = |sink: &Sink| matches!(sink, Sink::Store { .. });
    stage.per == Per::Columns && stage.sinks.iter().all(store)
}

/// Whether a stage that runs once a row reads or writes access `index`, counted over reads, then writes.
fn touched_by_row(image: &RowLoop, index: usize) -> bool {
    let reads = |inst: &LoopInst| match inst {
        LoopInst::Scalar(Inst::Input { input, .. }) => *input as usize == index,
        LoopInst::Gather { read, .. } => *read as usize == index,
        _ => false,
    };
    let writes = |sink: &Sink| matches!(sink, Sink::Store { write, .. } if *write as usize + image.reads.len() == index);
    let touches = |stage: &Stage| stage.insts.iter().any(reads) || stage.sinks.iter().any(writes);
    image.stages.iter().any(|stage| stage.per == Per::Row && touches(stage))
}

/// Rows of `columns` that are worked on at once: as many as fill a block, in whole chunks where that is possible.
pub(super) fn rows_of_tile(columns: usize, rows: usize) -> usize {
    let most = BLOCK / columns;
    let in_chunks = CHUNK >> columns.trailing_zeros().min(CHUNK.trailing_zeros());
    let even = most / in_chunks * in_chunks;
    (if even > 0 { even } else { most }).min(rows)
}

/// The reads of a staged loop that lie dense across its rows, where copies of a few rows of them stay in cache.
fn turned(image: &RowLoop, reads: &[Place], nest: &Nest) -> Vec<usize> {
    let gathers = |read: usize| {
        let gathers = |inst: &LoopInst| matches!(inst, LoopInst::Gather { read: r, .. } if *r as usize == read);
        image.stages.iter().any(|stage| stage.insts.iter().any(gathers))
    };
    let fits = |place: &Place| nest.columns * ACROSS * place.size <= 4 << 20;
    let dense = |place: &Place| place.column.abs() > 1 && place.row_stride().abs() == 1;
    let all = reads.iter().enumerate();
    all.filter(|&(i, place)| dense(place) && fits(place) && !gathers(i)).map(|(i, _)| i).collect()
}

fn asks_for_position(image: &RowLoop) -> bool {
    let asks = |inst: &LoopInst| matches!(inst, LoopInst::Scalar(Inst::Position));
    image.stages.iter().any(|stage| stage.insts.iter().any(asks))
}

/// Whether some instruction asks for the coordinate along `axis`.
pub(super) fn asks_for(insts: &[LoopInst], axis: usize) -> bool {
    let asks = |inst: &LoopInst| matches!(inst, LoopInst::Scalar(Inst::Index { axis: a }) if *a as usize == axis);
    insts.iter().any(asks)
}

struct Run<'r> {
    rows: &'r Rows,
    bound: Bound,
    cancel: &'r AtomicBool,
}

impl Run<'_> {
    fn frame(&self) -> Frame<'_> {
        let rows = self.rows;
        Frame::new(&rows.layout, &rows.reads, &rows.writes, &self.bound, self.extra())
    }

    /// A frame for rows whose turned reads are copied.
    fn turning_frame(&self) -> Frame<'_> {
        let rows = self.rows;
        let extra = self.extra() + rows.turned_bytes();
        Frame::new(&rows.layout, &rows.turned_reads, &rows.writes, &self.bound, extra)
    }

    /// Bytes of kept rows and of lanes.
    fn extra(&self) -> usize {
        let lanes = self.rows.most_reductions() * LANES_BYTES;
        (self.rows.kept_bytes() + lanes).next_multiple_of(64) + 64
    }

    fn tasks(&self, ready: &Ready, tasks: usize, work: impl Fn(&mut Frame, usize) + Sync) {
        let parallel = self.rows.cost > super::PARALLEL_NS;
        super::each(ready, parallel, tasks, || self.frame(), work);
    }

    /// Maps: columns are cut at will.
    fn map(&self, ready: &Ready) {
        let Rows { nest, stages, .. } = self.rows;
        let rows: usize = nest.outer.iter().product();
        let columns = nest.columns;
        if columns == 0 {
            return;
        }
        let pieces = columns.div_ceil(TASK);
        let grouped = (TASK / columns).clamp(1, rows);
        self.tasks(ready, rows.div_ceil(grouped) * pieces, |frame, task| {
            let (group, piece) = (task / pieces, task % pieces);
            let from = piece * TASK;
            for row in group * grouped..((group + 1) * grouped).min(rows) {
                frame.go_to_row(row, &nest.outer);
                frame.set_tile(
                    Per::Columns,
                    Tile { rows: 1, columns: columns.min(BLOCK), first_column: 0 },
                );
                frame.run(&stages[0].tile);
                self.blocks(frame, &stages[0], from, columns.min(from + TASK), &[]);
            }
        });
    }

    /// Rows one after the other, each on one thread.
    fn long(&self, ready: &Ready) {
        let nest = &self.rows.nest;
        let rows: usize = nest.outer.iter().product();
        let last = nest.outer[nest.outer.len() - 1];
        let mut grouped = (TASK / nest.columns.max(1)).clamp(1, rows);
        if !self.rows.turned.is_empty() {
            grouped = grouped.next_multiple_of(ACROSS);
        }
        let parallel = self.rows.cost > super::PARALLEL_NS;
        super::each(
            ready,
            parallel,
            rows.div_ceil(grouped),
            || self.turning_frame(),
            |frame, task| {
                let kept = self.kept_in(frame.extra());
                let mut partials = Vec::new();
                let end = ((task + 1) * grouped).min(rows);
                let mut first = task * grouped;
                while first < end {
                    // Rows that follow each other along the last outer dimension.
                    let count = (end - first).min(ACROSS).min(last - first % last);
                    frame.go_to_row(first, &nest.outer);
                    self.turn(frame, count);
                    for row in first..first + count {
                        frame.go_to_row(row, &nest.outer);
                        self.point_at_turned(frame, row - first);
                        self.row(frame, &kept, &mut partials);
                        if self.cancel.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                    first += count;
                }
            },
        );
    }

    /// Copies `count` rows of each turned read, from the frame's row on.
    fn turn(&self, frame: &mut Frame, count: usize) {
        let mut to = frame.extra().wrapping_add(self.extra());
        for &read in &self.rows.turned {
            let place = &self.rows.reads[read];
            let (row, columns) = (self.rows.turned_row(read), self.rows.nest.columns);
            // SAFETY: the access was found to lie in its buffer, and the frame's last bytes hold the copies.
            unsafe {
                turn_rows(
                    to,
                    frame.read_row(read),
                    (count, columns),
                    (place.row_stride(), place.column),
                    (row, place.size),
                );
            }
            to = to.wrapping_add(row * ACROSS);
        }
    }

    fn point_at_turned(&self, frame: &mut Frame, row: usize) {
        let mut at = frame.extra().wrapping_add(self.extra());
        for &read in &self.rows.turned {
            let bytes = self.rows.turned_row(read);
            frame.set_read_row(read, at.wrapping_add(row * bytes));
            at = at.wrapping_add(bytes * ACROSS);
        }
    }

    /// Where each kept value's row lies in `memory`.
    fn kept_in(&self, memory: *mut u8) -> Vec<*mut u8> {
        let mut at = memory;
        let mut kept = Vec::with_capacity(self.rows.kept.len());
        for &(_, size) in &self.rows.kept {
            kept.push(at);
            at = at.wrapping_add(self.rows.kept_row(size));
        }
        kept
    }

    fn row(&self, frame: &mut Frame, kept: &[*mut u8], partials: &mut Vec<Partial>) {
        for (i, stage) in self.rows.stages.iter().enumerate() {
            frame.again = i > 0;
            self.enter(frame, stage);
            if stage.per == Per::Row {
                self.drain_row(frame, stage);
                continue;
            }
            partials.clear();
            let pieces = self.rows.nest.columns.div_ceil(PIECE);
            for piece in 0..pieces {
                if self.cancel.load(Ordering::Relaxed) {
                    return;
                }
                self.piece(frame, stage, piece, kept, partials);
            }
            self.conclude(frame, stage, partials);
        }
    }

    /// Begins a stage at the frame's row.
    fn enter(&self, frame: &mut Frame, stage: &StageProgram) {
        let columns = self.rows.nest.columns.min(BLOCK);
        if columns == 0 && stage.per == Per::Columns {
            return;
        }
        frame.set_tile(stage.per, Tile { rows: 1, columns, first_column: 0 });
        frame.run(&stage.tile);
    }

    /// One piece of a row; the results of its reductions are pushed to `partials`.
    fn piece(
        &self,
        frame: &mut Frame,
        stage: &StageProgram,
        piece: usize,
        kept: &[*mut u8],
        partials: &mut Vec<Partial>,
    ) {
        let columns = self.rows.nest.columns;
        let lanes = |frame: &mut Frame, i: usize| {
            frame.extra().wrapping_add(self.rows.kept_bytes() + i * LANES_BYTES)
        };
        for (i, reduction) in stage.reductions.iter().enumerate() {
            let lanes = lanes(frame, i);
            // SAFETY: the frame's extra bytes hold a set of lanes for each reduction.
            unsafe { (reduction.reducer.start)(lanes) };
        }
        self.blocks(frame, stage, piece * PIECE, columns.min((piece + 1) * PIECE), kept);
        for (i, reduction) in stage.reductions.iter().enumerate() {
            let lanes = lanes(frame, i);
            // SAFETY: as above, and the lanes were started.
            partials.push(unsafe { (reduction.reducer.finish)(lanes) });
        }
    }

    fn blocks(
        &self,
        frame: &mut Frame,
        stage: &StageProgram,
        from: usize,
        to: usize,
        kept: &[*mut u8],
    ) {
        let mut first = from;
        while first < to {
            let columns = (to - first).min(BLOCK);
            frame.tile = Tile { rows: 1, columns, first_column: first };
            for (&(slot, size), &row) in self.rows.kept.iter().zip(kept) {
                frame.slots[slot as usize].ptr = row.wrapping_add(first * size);
            }
            frame.aim(&stage.drains);
            frame.run(&stage.block);
            self.drain(frame, stage);
            first += columns;
        }
    }

    fn drain(&self, frame: &mut Frame, stage: &StageProgram) {
        frame.bring_home(&stage.drains);
        for drain in &stage.drains {
            match *drain {
                Drain::Store { write, slot, .. } => frame.store(write, slot),
                Drain::Keep { kept, slot } => {
                    let size = self.size_of(kept);
                    frame.copy_slot(kept, slot, size);
                }
                Drain::SetRow { row, slot, size } => frame.copy_slot(row, slot, size as usize),
                Drain::Reduce { reduce, slot } => {
                    let reducer = &stage.reductions[reduce as usize].reducer;
                    let at = self.rows.kept_bytes() + reduce as usize * LANES_BYTES;
                    let lanes = frame.extra().wrapping_add(at);
                    take_block(frame, reducer, slot, lanes);
                }
            }
        }
    }

    fn size_of(&self, kept: SlotId) -> usize {
        let found = self.rows.kept.iter().find(|&&(slot, _)| slot == kept);
        found.map(|&(_, size)| size).expect("a kept slot is one of the program's")
    }

    fn drain_row(&self, frame: &mut Frame, stage: &StageProgram) {
        frame.run(&stage.block);
        self.drain(frame, stage);
    }

    /// Joins the pieces of each reduction and sets its row scalar.
    fn conclude(&self, frame: &mut Frame, stage: &StageProgram, partials: &[Partial]) {
        let count = stage.reductions.len();
        for (i, reduction) in stage.reductions.iter().enumerate() {
            let own = partials.get(i..).unwrap_or_default();
            let total = tree(&reduction.reducer, own, count, partials.len() / count);
            if reduction.reducer.arg {
                frame.splat(reduction.row, 4, total.position as u32 as u64);
            } else {
                frame.splat(reduction.row, reduction.reducer.dtype.size(), total.bits);
            }
            frame.run(&reduction.after);
        }
    }

    /// Few rows and long ones: the pieces of a row are tasks, and a stage ends before the next begins.
    fn shared_rows(&self, pool: &Pool) {
        let nest = &self.rows.nest;
        let mut memory: Vec<u64> = vec![0; self.rows.kept_bytes() / 8 + 8];
        let kept = Pointers(self.kept_in(memory.as_mut_ptr().cast()));
        let pieces = nest.columns.div_ceil(PIECE);
        let mut leader = self.frame();
        for row in 0..nest.outer.iter().product() {
            leader.go_to_row(row, &nest.outer);
            for stage in &self.rows.stages {
                self.enter(&mut leader, stage);
                if stage.per == Per::Row {
                    self.drain_row(&mut leader, stage);
                    continue;
                }
                let scalars: Vec<u64> = self
                    .rows
                    .scalars
                    .iter()
                    .map(|&(slot, size)| leader.first(slot, size))
                    .collect();
                let results: Vec<Mutex<Vec<Partial>>> =
                    (0..pieces).map(|_| Mutex::default()).collect();
                pool.run(pieces, &|piece| {
                    if self.cancel.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut frame = self.frame();
                    frame.go_to_row(row, &nest.outer);
                    for (&(slot, size), &bits) in self.rows.scalars.iter().zip(&scalars) {
                        frame.splat(slot, size, bits);
                    }
                    self.enter(&mut frame, stage);
                    let mut partials = Vec::new();
                    self.piece(&mut frame, stage, piece, kept.get(), &mut partials);
                    *results[piece].lock().expect("a piece is one task's") = partials;
                });
                let mut partials = Vec::new();
                for result in results {
                    partials.extend(result.into_inner().expect("all pieces have ended"));
                }
                if self.cancel.load(Ordering::Relaxed) {
                    return;
                }
                self.conclude(&mut leader, stage, &partials);
            }
        }
    }

    /// Short rows, as many at once as fill a block.
    fn short(&self, ready: &Ready) {
        let Rows { nest, tile_rows, tile_columns, .. } = self.rows;
        let last = nest.outer[nest.outer.len() - 1];
        let before: usize = nest.outer[..nest.outer.len() - 1].iter().product();
        let (down, strips) = (last.div_ceil(*tile_rows), nest.columns.div_ceil(*tile_columns));
        let tiles = before * down * strips;
        let grouped = TASK / BLOCK;
        self.tasks(ready, tiles.div_ceil(grouped), |frame, task| {
            for tile in task * grouped..((task + 1) * grouped).min(tiles) {
                // Tiles go down a little before they go across: both sides then use the lines that they have.
                let (outer, place) = (tile / (down * strips), tile % (down * strips));
                let from = place / (DOWN * strips) * DOWN;
                let height = (down - from).min(DOWN);
                let within = place - from * strips;
                let row = (from + within % height) * tile_rows;
                frame.go_to_row(outer * last + row, &nest.outer);
                let rows = (last - row).min(*tile_rows);
                let first_column = within / height * tile_columns;
                let columns = (nest.columns - first_column).min(*tile_columns);
                self.short_tile(frame, Tile { rows, columns, first_column });
            }
        });
    }

    fn short_tile(&self, frame: &mut Frame, tile: Tile) {
        for stage in &self.rows.stages {
            frame.set_tile(stage.per, tile);
            frame.run(&stage.tile);
            frame.aim(&stage.drains);
            frame.run(&stage.block);
            frame.bring_home(&stage.drains);
            for drain in &stage.drains {
                match *drain {
                    Drain::Store { write, slot, .. } => frame.store(write, slot),
                    Drain::Keep { kept, slot } => frame.copy_slot(kept, slot, self.size_of(kept)),
                    Drain::SetRow { row, slot, size } => frame.copy_slot(row, slot, size as usize),
                    Drain::Reduce { reduce, slot } => {
                        let reduction = &stage.reductions[reduce as usize];
                        let source = frame.slots[slot as usize];
                        let block = Operand { ptr: source.ptr, step: tile.columns };
                        let args = [block, Operand::NONE, Operand::NONE];
                        let out = frame.home(reduction.row);
                        // SAFETY: the source holds the tile's lanes, the row slot a value for each of its rows.
                        unsafe { (reduction.reducer.rows)(out, &args, tile.rows) };
                        frame.set_tile(Per::Row, tile);
                        frame.run(&reduction.after);
                        frame.set_tile(stage.per, tile);
                    }
                }
            }
        }
    }
}

/// Takes the tile's lanes of a slot into a set of lanes, padded where they end within a chunk.
pub(super) fn take_block(frame: &mut Frame, reducer: &Reducer, slot: SlotId, lanes: *mut u8) {
    let tile = frame.tile;
    frame.pad(slot, reducer.dtype.size(), reducer.identity);
    let first = tile.first_column as i32;
    let position = Operand { ptr: (&raw const first).cast(), step: 0 };
    let args = [frame.slots[slot as usize], position, Operand::NONE];
    // SAFETY: the slot holds the tile's chunks of the reducer's dtype, and `lanes` is a set of lanes in the frame.
    unsafe { (reducer.lanes)(lanes, &args, tile.chunks()) };
}

/// Rows of kept values that the pieces of a row write at disjoint columns.
struct Pointers(Vec<*mut u8>);

// SAFETY: each task touches the columns of its own piece only.
unsafe impl Sync for Pointers {}

impl Pointers {
    fn get(&self) -> &[*mut u8] {
        &self.0
    }
}
