//! Maps and row reductions: one loop nest in stages.
//!
//! A map is one pass over the columns. With reductions a row takes several passes: pass q may use
//! the reductions that passes before q have finished. What a later pass needs of an earlier one is
//! kept when it is costly and the row fits, and computed again otherwise.

use super::Emitter;
use super::columns::arithmetic;
use super::scalar::Insts;
use crate::Options;
use crate::fuse::{GroupKind, Source, inst_weight};
use crate::graph::Kind;
use vramlab_ir::kernel::{Access, LoopInst, Per, RowLoop, Sink, Stage};
use vramlab_ir::{ReduceKind, Reg};

pub(super) fn emit(emitter: &mut Emitter, options: &Options) -> RowLoop {
    let group = emitter.group;
    let (outer, columns) = match group.dims.split_last() {
        Some((&columns, outer)) => (outer.to_vec(), columns),
        None => (Vec::new(), 1),
    };
    let mut writes: Vec<Access> = (0..group.roots.len()).map(|r| emitter.write(r)).collect();
    let (stages, kept, row_scalars) = match group.kind {
        GroupKind::Map => (vec![map_stage(emitter)], 0, 0),
        _ => Staged::new(emitter, columns, options).emit(),
    };
    for stage in &stages {
        let times = match stage.per {
            Per::Columns => group.points(),
            Per::Row => group.points() / columns.max(1),
        } as u64;
        let reduces = stage.sinks.iter().filter(|s| matches!(s, Sink::Reduce { .. })).count();
        emitter.flops += (arithmetic(&stage.insts) + reduces as u64) * times;
    }
    let mut reads = std::mem::take(&mut emitter.reads);
    if group.dims.is_empty() {
        reads.iter_mut().chain(&mut writes).for_each(|access| access.strides.push(0));
    }
    RowLoop { outer, columns, reads, writes, stages, kept, row_scalars }
}

fn map_stage(emitter: &mut Emitter) -> Stage {
    let group = emitter.group;
    let mut insts = Insts::default();
    let mut registers: Vec<Option<Reg>> = vec![None; group.items.len()];
    for at in (0..group.items.len()).rev() {
        let item = &group.items[at];
        let reg = emitter.program(item, &mut insts, &mut |emitter, insts, request| {
            emitter.value(request, insts, &registers)
        });
        registers[at] = Some(reg);
    }
    let mut sinks: Vec<Sink> = Vec::with_capacity(group.roots.len());
    for (write, root) in group.roots.iter().enumerate() {
        let reg = emitter.value(root.request, &mut insts, &registers);
        sinks.push(Sink::Store { write: write as u32, reg });
    }
    let insts = insts.finish(&mut sinks, &mut []);
    Stage { per: Per::Columns, insts, sinks }
}

/// What is known of an item in a group of rows.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// One value a row, not one a column.
    row: bool,
    reduce: Option<ReduceKind>,
    /// The pass that computes it; for values a row: the pass from which it is there.
    pass: usize,
    /// Arithmetic to compute it from reads and row scalars.
    weight: u32,
    /// A constant: written wherever it is used.
    free: bool,
    row_slot: Option<u32>,
    keep_slot: Option<u32>,
    /// The first pass whose stage computed it.
    evaluated: Option<usize>,
}

struct Staged<'e, 'a> {
    emitter: &'e mut Emitter<'a>,
    places: Vec<Place>,
    passes: usize,
    kept: u32,
    row_scalars: u32,
    /// Bytes of row that may still be kept.
    budget: usize,
    columns: usize,
    stages: Vec<Draft>,
}

/// A stage under construction.
struct Draft {
    per: Per,
    pass: usize,
    insts: Insts,
    sinks: Vec<Sink>,
    registers: Vec<Option<Reg>>,
}

impl<'e, 'a> Staged<'e, 'a> {
    fn new(emitter: &'e mut Emitter<'a>, columns: usize, options: &Options) -> Staged<'e, 'a> {
        let count = emitter.group.items.len();
        Staged {
            emitter,
            places: vec![Place::default(); count],
            passes: 0,
            kept: 0,
            row_scalars: 0,
            budget: options.max_kept_row_bytes,
            columns,
            stages: Vec::new(),
        }
    }

    fn emit(mut self) -> (Vec<Stage>, u32, u32) {
        for at in (0..self.places.len()).rev() {
            self.places[at] = self.place(at);
            self.passes = self.passes.max(self.places[at].pass);
        }
        for pass in 0..=self.passes {
            self.row_stage(pass);
            self.column_stage(pass);
        }
        self.drop_unread();
        let stages = self.stages.into_iter().filter(|s| !s.sinks.is_empty());
        let stages = stages
            .map(|mut draft| {
                let insts = draft.insts.finish(&mut draft.sinks, &mut []);
                Stage { per: draft.per, insts, sinks: draft.sinks }
            })
            .collect();
        (stages, self.kept, self.row_scalars)
    }

    /// Values a row that only their own stage uses need no slot.
    fn drop_unread(&mut self) {
        let mut read = vec![false; self.row_scalars as usize];
        for inst in self.stages.iter().flat_map(|stage| &stage.insts.list) {
            if let LoopInst::RowScalar { slot, .. } = inst {
                read[*slot as usize] = true;
            }
        }
        for stage in &mut self.stages {
            stage.sinks.retain(|sink| match sink {
                Sink::SetRow { slot, .. } => read[*slot as usize],
                _ => true,
            });
        }
    }

    fn source(&self, request: u32) -> Option<usize> {
        match self.emitter.group.requests[request as usize].source {
            Source::Item(item) => Some(item as usize),
            Source::Read => None,
        }
    }

    fn place(&self, at: usize) -> Place {
        let group = self.emitter.group;
        let item = &group.items[at];
        let operands: Vec<Place> = item
            .operands
            .iter()
            .filter_map(|o| self.source(o.request))
            .map(|i| self.places[i])
            .collect();
        let pass = operands.iter().map(|p| p.pass).max().unwrap_or(0);
        let below = operands.iter().filter(|p| !p.row).map(|p| p.weight).sum::<u32>();
        match &self.emitter.graph.node(item.node).kind {
            Kind::Reduce { kind, .. } => {
                Place { row: true, reduce: Some(*kind), pass: pass + 1, ..Place::default() }
            }
            Kind::Map(program) => Place {
                row: item.form.strides.last() == Some(&0)
                    && item.indices.iter().all(|(_, f)| f.strides.last() == Some(&0)),
                pass,
                weight: program.insts.iter().map(inst_weight).sum::<u32>().saturating_add(below),
                free: item.operands.is_empty()
                    && program.insts.len() == 1
                    && item.indices.is_empty(),
                ..Place::default()
            },
            _ => unreachable!("rows hold maps and reductions"),
        }
    }

    fn draft(&mut self, per: Per, pass: usize) -> usize {
        let registers = vec![None; self.places.len()];
        let insts = Insts::default();
        self.stages.push(Draft { per, pass, insts, sinks: Vec::new(), registers });
        self.stages.len() - 1
    }

    /// Values a row that became possible with the reductions of the pass before.
    fn row_stage(&mut self, pass: usize) {
        let stage = self.draft(Per::Row, pass);
        for at in (0..self.places.len()).rev() {
            let place = self.places[at];
            if place.row && place.reduce.is_none() && !place.free && place.pass == pass {
                let reg = self.item(at, stage);
                let slot = self.row_slot(at);
                self.stages[stage].sinks.push(Sink::SetRow { slot, reg });
            }
        }
        for root in 0..self.emitter.group.roots.len() {
            let request = self.emitter.group.roots[root].request;
            if self.per_row(root) && self.pass_of(request) == pass {
                let reg = self.value(request, stage);
                self.stages[stage].sinks.push(Sink::Store { write: root as u32, reg });
            }
        }
    }

    fn column_stage(&mut self, pass: usize) {
        let stage = self.draft(Per::Columns, pass);
        for at in (0..self.places.len()).rev() {
            if let Place { reduce: Some(kind), pass: done, .. } = self.places[at]
                && done == pass + 1
            {
                let request = self.emitter.group.items[at].operands[0].request;
                let reg = self.value(request, stage);
                let slot = self.row_slot(at);
                self.stages[stage].sinks.push(Sink::Reduce { kind, reg, slot });
            }
        }
        for root in 0..self.emitter.group.roots.len() {
            let request = self.emitter.group.roots[root].request;
            if !self.per_row(root) && self.pass_of(request) == pass {
                let reg = self.value(request, stage);
                self.stages[stage].sinks.push(Sink::Store { write: root as u32, reg });
            }
        }
    }

    /// Whether a root has one element a row.
    fn per_row(&self, root: usize) -> bool {
        self.emitter.group.roots[root].write.strides.last() == Some(&0)
    }

    fn pass_of(&self, request: u32) -> usize {
        self.source(request).map_or(0, |item| self.places[item].pass)
    }

    fn row_slot(&mut self, at: usize) -> u32 {
        if let Some(slot) = self.places[at].row_slot {
            return slot;
        }
        let slot = self.row_scalars;
        self.row_scalars += 1;
        self.places[at].row_slot = Some(slot);
        slot
    }

    fn value(&mut self, request: u32, stage: usize) -> Reg {
        match self.source(request) {
            Some(item) => self.item(item, stage),
            None => {
                let draft = &mut self.stages[stage];
                self.emitter.value(request, &mut draft.insts, &draft.registers)
            }
        }
    }

    /// The register of item `at` in a stage: from the stage itself, a row scalar, a kept row, or
    /// computed.
    fn item(&mut self, at: usize, stage: usize) -> Reg {
        if let Some(reg) = self.stages[stage].registers[at] {
            return reg;
        }
        let reg = self.item_anew(at, stage);
        self.stages[stage].registers[at] = Some(reg);
        reg
    }

    fn item_anew(&mut self, at: usize, stage: usize) -> Reg {
        let place = self.places[at];
        let dtype = self.emitter.graph.ty(self.emitter.group.items[at].node).dtype;
        let (per, pass) = (self.stages[stage].per, self.stages[stage].pass);
        let done = place.row && !place.free && (per == Per::Columns || place.reduce.is_some());
        if done || (place.row && place.row_slot.is_some()) {
            let slot = self.row_slot(at);
            return self.stages[stage].insts.push(LoopInst::RowScalar { slot, dtype });
        }
        if let Some(first) = place.evaluated.filter(|&first| first < pass && per == Per::Columns)
            && let Some(slot) = self.keep(at, first)
        {
            return self.stages[stage].insts.push(LoopInst::Kept { slot, dtype });
        }
        let group = self.emitter.group;
        let item = &group.items[at];
        let registers: Vec<Reg> = item
            .operands
            .iter()
            .filter(|o| o.gather.is_none())
            .map(|o| self.value(o.request, stage))
            .collect();
        if per == Per::Columns && place.evaluated.is_none() {
            self.places[at].evaluated = Some(pass);
        }
        let mut insts = std::mem::take(&mut self.stages[stage].insts);
        let values: Vec<(u32, Reg)> = item
            .operands
            .iter()
            .filter(|o| o.gather.is_none())
            .map(|o| o.request)
            .zip(registers)
            .collect();
        let reg = self.emitter.program(item, &mut insts, &mut |_, _, request| {
            values.iter().find(|(r, _)| *r == request).expect("asked for above").1
        });
        self.stages[stage].insts = insts;
        reg
    }

    /// The slot that keeps item `at` from pass `first` on, when that is worth it and fits.
    fn keep(&mut self, at: usize, first: usize) -> Option<u32> {
        if let Some(slot) = self.places[at].keep_slot {
            return Some(slot);
        }
        let node = self.emitter.group.items[at].node;
        let bytes = self.columns * self.emitter.graph.ty(node).dtype.size();
        if self.places[at].weight <= crate::fuse::CHEAP || bytes > self.budget {
            return None;
        }
        self.budget -= bytes;
        let slot = self.kept;
        self.kept += 1;
        self.places[at].keep_slot = Some(slot);
        let draft = self
            .stages
            .iter_mut()
            .find(|s| s.per == Per::Columns && s.pass == first)
            .expect("passed");
        let reg = draft.registers[at].expect("computed in that pass");
        draft.sinks.push(Sink::Keep { slot, reg });
        Some(slot)
    }
}
