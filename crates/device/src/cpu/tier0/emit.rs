//! From lowered instructions to steps: levels, slots, chains, drains.

use super::access::{self, Axis};
use super::chain::{self, ChainFn, Kind, Micro};
use super::convert;
use super::decode::Decoder;
use super::lower::{Arithmetic, Low, Lowered, register};
use super::ops;
use super::reduce::Reducer;
use super::step::{Drain, Reduction, SlotId, StageProgram, Step};
use crate::LaunchError;
use std::collections::BTreeMap;
use vramlab_ir::kernel::{Per, Sink};
use vramlab_ir::{DType, ReduceKind};

/// How often a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Once,
    Tile,
    Block,
}

/// The last step, as long as it may grow.
struct Chain {
    f: ChainFn,
    /// The register that it computes.
    tail: usize,
    step: usize,
    /// The step as a chain, as long as it is none.
    start: [Micro; 2],
}

/// Hands out slots and writes steps.
pub(super) struct Emitter<'d, 'a> {
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
    pub program: StageProgram,
}

impl<'d, 'a> Emitter<'d, 'a> {
    pub fn new(decoder: &'d mut Decoder<'a>, per: Per, lowered: Lowered) -> Emitter<'d, 'a> {
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

    pub fn emit(&mut self, sinks: &[Sink]) -> Result<(), LaunchError> {
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
                access::widen(&mut self.decoder.reads[read as usize], limit, stride);
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
                let slow = matches!(arithmetic, Arithmetic::Op(op) if ops::fetches(op, dtype));
                match slow {
                    true => self.push(level, Step::Slow { f, out, arg: slots[0] }),
                    false => self.push(level, Step::Apply { f, out, args: slots }),
                }
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
        self.chain = Some(Chain { f, tail: at, step, start: [first, second] });
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
        let chain = self.chain.take()?;
        let others: Vec<SlotId> =
            args.iter().filter(|&&arg| arg != tail).map(|&arg| self.slots[arg]).collect();
        let first = others.first().copied().unwrap_or(self.slots[tail]);
        let micro = Micro { kind, a: first, b: others.get(1).copied().unwrap_or(first) };
        let out = match self.targets.get(&at) {
            Some(&target) => target,
            // The value stays where it is, under the new register's name.
            None => {
                (self.temporary[tail], self.temporary[at]) = (false, true);
                self.slots[tail]
            }
        };
        // Behind the loads that came in between, which never touch a temporary slot.
        let mut micros = match self.program.block.remove(step) {
            Step::Chain { micros, .. } => micros,
            _ => chain.start.to_vec(),
        };
        micros.push(micro);
        self.program.block.push(Step::Chain { f: chain.f, out, micros });
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
        kind: ReduceKind,
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
            let chain = convert::conversion(own, result, self.decoder.isa);
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
