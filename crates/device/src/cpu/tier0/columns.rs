//! Column reductions: whole rows stream past accumulators for many columns.
//!
//! The reduced dimension is cut into groups of a size that follows from the shape. A group's rows are taken in order;
//! the groups then join pairwise. Of short rows, as many as fill a block are taken as one, and joined at the end.

use super::access::{self, Nest, Place};
use super::copy::Tile;
use super::decode::Decoder;
use super::frame::{Bound, Frame, Layout};
use super::lanes::{BLOCK, BlockFn, CHUNK, Operand};
use super::reduce::Reducer;
use super::rows::{SHORT, asks_for, rows_of_tile};
use super::step::{Drain, SlotId, StageProgram, Step};
use super::{Ready, bind_all, cancelled, convert};
use crate::LaunchError;
use crate::cpu::isa::Isa;
use crate::cpu::space::DevicePtr;
use std::sync::atomic::{AtomicBool, Ordering};
use vramlab_ir::kernel::{ColumnReduce, Per, Sink};
use vramlab_ir::{DType, Kernel};

/// Columns that one task takes at most: their accumulators stay in the first-level cache.
const WIDE: usize = 4096;
/// Elements that one task takes, about.
const TASK: usize = 256 * 1024;
/// Rows that pass at once where nothing but the reduction is done with them.
const STREAMS: usize = 8;

/// A decoded column reduction.
#[derive(Debug)]
pub(super) struct Columns {
    nest: Nest,
    reads: Vec<Place>,
    writes: Vec<Place>,
    program: StageProgram,
    layout: Layout,
    folds: Vec<Fold>,
    /// i32 row numbers: a splat in the long mode, a block in the other.
    numbers: SlotId,
    tile_rows: usize,
    /// Columns of a task.
    width: usize,
    /// Rows of a group.
    group: usize,
    cost: f64,
}

/// One reduction.
#[derive(Debug)]
struct Fold {
    reducer: Reducer,
    /// What is folded.
    slot: SlotId,
    /// The read that it is, where nothing is computed.
    read: Option<usize>,
    write: u16,
    /// Copies or converts results into `result` for storing.
    finish: BlockFn,
    result: SlotId,
    /// Bytes before this fold's accumulators among all of a task's.
    offset: usize,
}

impl Columns {
    pub fn new(kernel: &Kernel, image: &ColumnReduce, isa: Isa) -> Result<Columns, LaunchError> {
        let mut extents = image.outer.clone();
        extents.extend([image.reduced, image.columns]);
        super::check_ranks(kernel, image.reads.iter().chain(&image.writes), extents.len())?;
        let reduced_axis = image.outer.len();
        let keep: Vec<bool> = (0..extents.len())
            .map(|axis| axis == reduced_axis || asks_for(&image.insts, axis))
            .collect();
        let accesses: Vec<_> = image.reads.iter().chain(&image.writes).collect();
        let (nest, mut reads) = access::simplify(&extents, &accesses, &keep, false);
        let mut writes = reads.split_off(image.reads.len());
        for write in &mut writes {
            // Results have no place along the reduced dimension, so an empty one does not empty them.
            if image.reduced == 0 && !image.outer.contains(&0) && image.columns > 0 {
                write.span = access::span_without(write, &nest);
            }
        }
        let short = (1..=SHORT).contains(&nest.columns) && image.reduced > 1;
        let tile_rows = if short { rows_of_tile(nest.columns, image.reduced) } else { 1 };
        let write_types: Vec<DType> = writes.iter().map(|place| place.dtype).collect();
        let mut decoder =
            Decoder::new(&kernel.name, isa, &nest, &mut reads, &write_types, tile_rows);
        let sinks = image.reduces.iter().zip(0..);
        let sinks: Vec<Sink> =
            sinks.map(|(&(kind, reg, _), slot)| Sink::Reduce { kind, reg, slot }).collect();
        let program = decoder.stage(Per::Columns, &image.insts, &sinks)?;
        let numbers = if tile_rows == 1 { decoder.splat_slot(4) } else { decoder.block_slot(4) };
        let width = if tile_rows == 1 { nest.columns.min(WIDE) } else { nest.columns };
        let lanes = if tile_rows == 1 { width } else { tile_rows * nest.columns };
        let mut folds = Vec::new();
        let mut offset = 0;
        for (drain, &(.., write)) in program.drains.iter().zip(&image.reduces) {
            let Drain::Reduce { reduce, slot } = *drain else {
                return Err(decoder.malformed("a column reduction does something else"));
            };
            let reducer = program.reductions[reduce as usize].reducer;
            let Some(&wanted) = write_types.get(write as usize) else {
                return Err(decoder.malformed(format!("there is no write {write}")));
            };
            let own = if reducer.arg { DType::I32 } else { reducer.dtype };
            let mut chain = convert::conversion(own, wanted, isa);
            let (Some((finish, _)), true) = (chain.pop(), chain.is_empty()) else {
                return Err(decoder.malformed(format!("results of {own} stored as {wanted}")));
            };
            let result = decoder.block_slot(wanted.size());
            let read = passes_on(&program, slot);
            let write = write as u16;
            folds.push(Fold { reducer, slot, read, write, finish, result, offset });
            offset += accumulator_bytes(&reducer, lanes);
        }
        let once = program.once.clone();
        let layout = Layout {
            constants: decoder.constants(),
            bytes: decoder.frame_bytes,
            slots: decoder.slots,
            once,
            columns: nest.columns,
        };
        let per_tile = width.max(1) * tile_rows;
        let group = (TASK / per_tile).clamp(64usize.div_ceil(tile_rows), 8192) * tile_rows;
        let elements = nest.outer.iter().product::<usize>() as f64 * nest.columns as f64;
        let traffic: usize = reads.iter().map(|place| place.size).sum();
        let cost = elements * (program.cost + traffic as f64 * 0.04);
        Ok(Columns {
            nest,
            reads,
            writes,
            program,
            layout,
            folds,
            numbers,
            tile_rows,
            width,
            group,
            cost,
        })
    }

    pub fn code_bytes(&self) -> usize {
        let steps = self.program.tile.len() + self.program.block.len() + self.folds.len() * 4;
        steps * 48 + self.layout.slots.len() * 16
    }

    pub fn scratch_bytes(&self) -> usize {
        let partials = if self.groups() > 1 { self.tasks() * self.stride() } else { 0 };
        self.layout.bytes + self.stride() + partials
    }

    fn reduced(&self) -> usize {
        self.nest.outer[self.nest.outer.len() - 1]
    }

    fn before(&self) -> usize {
        self.nest.outer[..self.nest.outer.len() - 1].iter().product()
    }

    fn groups(&self) -> usize {
        self.reduced().div_ceil(self.group).max(1)
    }

    fn strips(&self) -> usize {
        self.nest.columns.div_ceil(self.width.max(1))
    }

    fn tasks(&self) -> usize {
        self.before() * self.strips() * self.groups()
    }

    fn lanes(&self) -> usize {
        if self.tile_rows == 1 { self.width } else { self.tile_rows * self.nest.columns }
    }

    /// Bytes of all accumulators of a task.
    fn stride(&self) -> usize {
        let each = |fold: &Fold| accumulator_bytes(&fold.reducer, self.lanes());
        self.folds.iter().map(each).sum()
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let bound = bind_all(&self.reads, &self.writes, buffers, ready.kernel)?;
        if self.nest.columns == 0 || self.before() == 0 {
            return Ok(());
        }
        let groups = self.groups();
        let run = Run { columns: self, bound, cancel: ready.cancel };
        let tasks = self.tasks();
        let parallel = self.cost > super::PARALLEL_NS;
        if groups == 1 {
            run.each(ready, parallel, tasks, |frame, task| {
                let sums = frame.extra();
                run.group(frame, task, sums);
                run.store(frame, task, sums);
            });
            return cancelled(ready.cancel);
        }
        // Each task leaves a strip of results; those of one strip's groups lie one behind the other, fold by fold.
        let strips = tasks / groups;
        let mut memory: Vec<u64> = vec![0; strips * groups * run.partial_stride() / 8];
        let partials = Partials(memory.as_mut_ptr().cast());
        run.each(ready, parallel, tasks, |frame, task| {
            let sums = frame.extra();
            run.group(frame, task, sums);
            run.leave(sums, task, partials.get());
        });
        cancelled(ready.cancel)?;
        run.each(ready, parallel, strips, |frame, strip| run.join(frame, strip, partials.get()));
        cancelled(ready.cancel)
    }
}

/// The read that a slot is loaded from, where loading is all that the program does.
fn passes_on(program: &StageProgram, slot: SlotId) -> Option<usize> {
    let only_loads = program.block.iter().all(|step| matches!(step, Step::Load { .. }));
    let mut loads = program.block.iter().filter_map(|step| match step {
        Step::Load { read, slot: loaded } if *loaded == slot => Some(*read as usize),
        _ => None,
    });
    loads.next().filter(|_| only_loads)
}

/// Values, then positions where they are asked for; whole chunks of both.
fn accumulator_bytes(reducer: &Reducer, lanes: usize) -> usize {
    let lanes = lanes.next_multiple_of(CHUNK);
    let positions = if reducer.arg { 4 } else { 0 };
    (lanes * (reducer.dtype.size() + positions)).next_multiple_of(64)
}

/// Where the positions lie behind `lanes` values.
fn positions(reducer: &Reducer, values: *mut u8, lanes: usize) -> *mut u8 {
    values.wrapping_add(lanes.next_multiple_of(CHUNK) * reducer.dtype.size())
}

/// Partial results that tasks write at disjoint places.
struct Partials(*mut u8);

// SAFETY: each task writes its own group's results; they are read after all tasks have ended.
unsafe impl Sync for Partials {}

impl Partials {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

struct Run<'r> {
    columns: &'r Columns,
    bound: Bound,
    cancel: &'r AtomicBool,
}

impl Run<'_> {
    fn each(
        &self,
        ready: &Ready,
        parallel: bool,
        tasks: usize,
        work: impl Fn(&mut Frame, usize) + Sync,
    ) {
        let c = self.columns;
        let frame = || Frame::new(&c.layout, &c.reads, &c.writes, &self.bound, c.stride() + 64);
        super::each(ready, parallel, tasks, frame, work);
    }

    /// (the row of the task's first element, first column, columns)
    fn strip(&self, strip: usize) -> (usize, usize, usize) {
        let c = self.columns;
        let first = strip % c.strips() * c.width;
        let columns = (c.nest.columns - first).min(c.width);
        // An empty dimension has one place all the same: that of the results.
        (strip / c.strips() * c.reduced().max(1), first, columns)
    }

    /// Reduces one group of rows of one strip into `sums`.
    fn group(&self, frame: &mut Frame, task: usize, sums: *mut u8) {
        let c = self.columns;
        let (row0, first, columns) = self.strip(task / c.groups());
        let from = task % c.groups() * c.group;
        let to = (from + c.group).min(c.reduced());
        for fold in &c.folds {
            self.start(fold, sums.wrapping_add(fold.offset));
        }
        if c.tile_rows > 1 {
            self.short(frame, row0, (from, to), sums);
            return;
        }
        let whole =
            if c.folds.iter().all(|fold| self.streams(fold)) { columns / CHUNK * CHUNK } else { 0 };
        if whole > 0 {
            self.stream(frame, row0, (from, to), (first, whole), sums);
        }
        if whole < columns {
            self.long(frame, row0, (from, to), (first, whole, columns), sums);
        }
    }

    /// Whether a fold takes an array as it is, row by row.
    fn streams(&self, fold: &Fold) -> bool {
        let dense = |read: usize| self.columns.reads[read].column == 1;
        fold.read.is_some_and(dense) && fold.reducer.fold_rows.is_some()
    }

    fn start(&self, fold: &Fold, sums: *mut u8) {
        let lanes = self.columns.lanes().next_multiple_of(CHUNK);
        let size = fold.reducer.dtype.size();
        for lane in 0..lanes {
            // SAFETY: the accumulators hold `lanes` values.
            unsafe { super::copy::store_bits(sums.add(lane * size), size, fold.reducer.identity) };
        }
        if fold.reducer.arg {
            let positions = positions(&fold.reducer, sums, lanes).cast::<i32>();
            for lane in 0..lanes {
                // SAFETY: as many positions lie behind them.
                unsafe { *positions.add(lane) = -1 };
            }
        }
    }

    /// Several rows at once, straight from the arrays.
    fn stream(
        &self,
        frame: &mut Frame,
        row0: usize,
        rows: (usize, usize),
        (first, columns): (usize, usize),
        sums: *mut u8,
    ) {
        let c = self.columns;
        let mut row = rows.0;
        while row < rows.1 {
            if self.cancel.load(Ordering::Relaxed) {
                return;
            }
            let count = (rows.1 - row).min(STREAMS);
            frame.go_to_row(row0 + row, &c.nest.outer);
            for fold in &c.folds {
                let (Some(read), Some(fold_rows)) = (fold.read, fold.reducer.fold_rows) else {
                    continue;
                };
                let place = &c.reads[read];
                let ptr = frame.read_row(read).wrapping_add(first * place.size);
                let distance = (place.row_stride() * place.size as isize) as usize;
                let args = [
                    Operand { ptr, step: place.size * CHUNK },
                    Operand { ptr: std::ptr::null(), step: distance },
                    Operand { ptr: std::ptr::null(), step: count },
                ];
                // SAFETY: the rows lie in their buffer, the accumulators hold the strip's columns.
                unsafe { fold_rows(sums.add(fold.offset), &args, columns / CHUNK) };
            }
            row += count;
        }
    }

    /// Row by row, block by block, from column `from` of the strip on.
    fn long(
        &self,
        frame: &mut Frame,
        row0: usize,
        rows: (usize, usize),
        (first, from, columns): (usize, usize, usize),
        sums: *mut u8,
    ) {
        let c = self.columns;
        for row in rows.0..rows.1 {
            if self.cancel.load(Ordering::Relaxed) {
                return;
            }
            frame.go_to_row(row0 + row, &c.nest.outer);
            frame.tile = Tile { rows: 1, columns: BLOCK.min(columns), first_column: first };
            frame.splat(c.numbers, 4, row as u64);
            frame.run(&c.program.tile);
            let mut column = from;
            while column < columns {
                let count = (columns - column).min(BLOCK);
                frame.tile = Tile { rows: 1, columns: count, first_column: first + column };
                frame.run(&c.program.block);
                self.fold(frame, sums, column, c.lanes());
                column += count;
            }
        }
    }

    /// A block of short rows at a time.
    fn short(&self, frame: &mut Frame, row0: usize, rows: (usize, usize), sums: *mut u8) {
        let c = self.columns;
        let mut row = rows.0;
        while row < rows.1 {
            if self.cancel.load(Ordering::Relaxed) {
                return;
            }
            let count = (rows.1 - row).min(c.tile_rows);
            frame.go_to_row(row0 + row, &c.nest.outer);
            frame.tile = Tile { rows: count, columns: c.nest.columns, first_column: 0 };
            frame.run(&c.program.tile);
            frame.run(&c.program.block);
            if c.folds.iter().any(|fold| fold.reducer.arg) {
                frame.fill_by_lane(c.numbers, |in_tile, _| (row + in_tile) as u32);
                frame.pad(c.numbers, 4, u32::MAX as u64);
            }
            self.fold(frame, sums, 0, c.lanes());
            row += count;
        }
        let columns = Operand { ptr: std::ptr::null(), step: c.nest.columns };
        for fold in &c.folds {
            let values = sums.wrapping_add(fold.offset);
            let at = positions(&fold.reducer, values, c.lanes());
            let args = [columns, Operand { ptr: at, step: 0 }, Operand::NONE];
            // SAFETY: the accumulators hold a segment for each row of a full tile.
            unsafe { (fold.reducer.segments)(values, &args, c.tile_rows) };
        }
    }

    /// Takes the tile's lanes into the accumulators from lane `at` on.
    fn fold(&self, frame: &mut Frame, sums: *mut u8, at: usize, lanes: usize) {
        for fold in &self.columns.folds {
            let values = sums.wrapping_add(fold.offset);
            let held = positions(&fold.reducer, values, lanes).wrapping_add(at * 4);
            let to = values.wrapping_add(at * fold.reducer.dtype.size());
            // Lanes behind a tile of short rows are accumulators of rows that this tile lacks. Two folds of one value
            // pad it differently, so this comes right before the use.
            frame.pad(fold.slot, fold.reducer.dtype.size(), fold.reducer.identity);
            let args = [
                frame.slots[fold.slot as usize],
                Operand { ptr: held, step: 0 },
                frame.slots[self.columns.numbers as usize],
            ];
            // SAFETY: the slot holds the tile's chunks, and the accumulators as many from lane `at` on.
            unsafe { (fold.reducer.fold)(to, &args, frame.tile.chunks()) };
        }
    }

    /// Writes a strip's results to the arrays.
    fn store(&self, frame: &mut Frame, task: usize, sums: *mut u8) {
        let c = self.columns;
        let (row0, first, columns) = self.strip(task / c.groups());
        frame.go_to_row(row0, &c.nest.outer);
        for fold in &c.folds {
            let values = sums.wrapping_add(fold.offset);
            self.store_fold(
                frame,
                fold,
                (first, columns),
                values,
                positions(&fold.reducer, values, c.lanes()),
            );
        }
    }

    fn store_fold(
        &self,
        frame: &mut Frame,
        fold: &Fold,
        (first, columns): (usize, usize),
        values: *mut u8,
        positions: *mut u8,
    ) {
        let (source, size) = match fold.reducer.arg {
            true => (positions, 4),
            false => (values, fold.reducer.dtype.size()),
        };
        let mut column = 0;
        while column < columns {
            let count = (columns - column).min(BLOCK);
            frame.tile = Tile { rows: 1, columns: count, first_column: first + column };
            let from = Operand { ptr: source.wrapping_add(column * size), step: size * CHUNK };
            let out = frame.home(fold.result);
            // SAFETY: results lie in whole chunks, and the slot's home holds a block.
            unsafe {
                (fold.finish)(out, &[from, Operand::NONE, Operand::NONE], frame.tile.chunks())
            };
            frame.store(fold.write, fold.result);
            column += count;
        }
    }

    /// Bytes of one task's partial results: the strip's columns alone, in whole lines.
    fn partial_stride(&self) -> usize {
        self.columns.folds.iter().map(|fold| self.partial_bytes(fold)).sum()
    }

    fn partial_bytes(&self, fold: &Fold) -> usize {
        self.columns.width * (fold.reducer.dtype.size() + if fold.reducer.arg { 4 } else { 0 })
            + 2 * CHUNK * 8
    }

    /// Where a strip's groups lie for a fold: values of group after group, then positions likewise.
    fn partials_of(&self, fold: usize, strip: usize, partials: *mut u8) -> (*mut u8, *mut u8) {
        let c = self.columns;
        let before: usize = c.folds[..fold].iter().map(|fold| self.partial_bytes(fold)).sum();
        let at = (strip * self.partial_stride() + before) * c.groups();
        let values = partials.wrapping_add(at.next_multiple_of(8));
        let held = c.groups() * c.width * c.folds[fold].reducer.dtype.size();
        (values, values.wrapping_add(held.next_multiple_of(8)))
    }

    /// Leaves a group's results for the join.
    fn leave(&self, sums: *mut u8, task: usize, partials: *mut u8) {
        let c = self.columns;
        let (strip, group) = (task / c.groups(), task % c.groups());
        let (.., columns) = self.strip(strip);
        for (i, fold) in c.folds.iter().enumerate() {
            let values = sums.wrapping_add(fold.offset);
            let held = positions(&fold.reducer, values, c.lanes());
            let (to, positions_to) = self.partials_of(i, strip, partials);
            let size = fold.reducer.dtype.size();
            // SAFETY: each (strip, group) has a place of its own for the strip's columns.
            unsafe {
                let to = to.add(group * columns * size);
                to.copy_from_nonoverlapping(values, columns * size);
                if fold.reducer.arg {
                    let to = positions_to.add(group * columns * 4);
                    to.copy_from_nonoverlapping(held, columns * 4);
                }
            }
        }
    }

    /// Joins the groups of one strip and writes the results.
    fn join(&self, frame: &mut Frame, strip: usize, partials: *mut u8) {
        let c = self.columns;
        let (row0, first, columns) = self.strip(strip);
        frame.go_to_row(row0, &c.nest.outer);
        for (i, fold) in c.folds.iter().enumerate() {
            let (values, positions) = self.partials_of(i, strip, partials);
            let width = Operand { ptr: std::ptr::null(), step: columns };
            let args = [width, Operand { ptr: positions, step: 0 }, Operand::NONE];
            // SAFETY: the groups' results lie one behind the other.
            unsafe { (fold.reducer.segments)(values, &args, c.groups()) };
            self.store_fold(frame, fold, (first, columns), values, positions);
        }
    }
}
