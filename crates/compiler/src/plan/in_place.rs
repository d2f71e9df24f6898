//! Working in place: a map, or what is done to a product, may write over an operand that nobody reads
//! afterwards, when it reads and writes each element at the same place.

use super::{Draft, Home, Planner};
use vramlab_ir::Inst;
use vramlab_ir::kernel::{Access, Body, Dot, LoopInst, Per, RowLoop, Sink};

impl Planner<'_> {
    /// Walks the kernels in order and lets each result of a kernel take over an operand's bytes.
    pub(super) fn work_in_place(&mut self, drafts: &[Draft]) {
        for (at, draft) in drafts.iter().enumerate() {
            if let Some(operand) = draft.copies {
                self.drop_copy(drafts, at, operand);
                continue;
            }
            // A donated argument first: what takes its place is no fresh result.
            let is_temporary = |pair: &&(u32, u32)| self.storage_of(pair.1).home == Home::Temporary;
            let (temporaries, arguments): (Vec<_>, Vec<_>) =
                draft.in_place.iter().partition(is_temporary);
            for (slot, read) in arguments.into_iter().chain(temporaries).copied() {
                if self.lives[slot as usize].writers == 1 && self.takes_over(at + 1, slot, read) {
                    self.merge(read, slot);
                }
            }
        }
    }

    fn takes_over(&self, time: usize, slot: u32, read: u32) -> bool {
        let storage = self.storage_of(read);
        storage.last == time
            && self.lives[read as usize].last == time
            && self.find(slot) == slot
            && self.find(read) != self.find(slot)
            && self.bytes[read as usize] == self.bytes[slot as usize]
            && self.yields(storage.home)
            && self.lives[slot as usize].first == time
    }

    fn yields(&self, home: Home) -> bool {
        match home {
            Home::Argument(argument) => self.donated[argument as usize],
            Home::Result(_) => false,
            Home::Temporary => true,
        }
    }

    /// Lets an update work in its operand's buffer, and drops the copy, when nothing else reads the
    /// operand from then on.
    fn drop_copy(&mut self, drafts: &[Draft], copy: usize, operand: u32) {
        let [slot] = drafts[copy].writes[..] else { return };
        let storage = self.storage_of(operand);
        if !self.yields(storage.home)
            || storage.last != self.lives[operand as usize].last
            || self.find(operand) == self.find(slot)
            || self.bytes[operand as usize] != self.bytes[slot as usize]
        {
            return;
        }
        let last = self.lives[operand as usize].last.min(drafts.len());
        let harmless = |draft: &Draft| {
            !draft.reads.contains(&operand)
                || (draft.writes == [slot] && draft.in_place.contains(&(slot, operand)))
        };
        if self.lives[operand as usize].last <= drafts.len()
            && drafts[copy + 1..last].iter().all(harmless)
        {
            self.merge(operand, slot);
            self.dropped[copy] = true;
        }
    }
}

/// The pairs (slot written, slot read) of a kernel whose accesses allow the write to take over the
/// read's bytes.
pub(crate) fn in_place(
    body: &Body,
    buffers: &[u32],
    writes: &[u32],
    reads: &[u32],
) -> Vec<(u32, u32)> {
    let rows = match body {
        Body::Rows(rows) => rows,
        Body::Dot(dot) => return over_an_operand_of_its_epilogue(dot, buffers, reads),
        _ => return Vec::new(),
    };
    let mut pairs = Vec::new();
    for (index, write) in rows.writes.iter().enumerate() {
        let slot = buffers[write.buffer as usize];
        if writes.len() != rows.writes.len() {
            continue;
        }
        for &read in reads {
            if read != slot && reads_as_it_writes(rows, buffers, index, read) {
                pairs.push((slot, read));
            }
        }
    }
    pairs
}

/// A product's result may take over what only the epilogue reads, and only where it writes.
fn over_an_operand_of_its_epilogue(dot: &Dot, buffers: &[u32], reads: &[u32]) -> Vec<(u32, u32)> {
    let Some(epilogue) = &dot.epilogue else { return Vec::new() };
    let slot = |buffer: u32| buffers[buffer as usize];
    let accesses = || epilogue.reads.iter();
    let of = |read: u32| accesses().filter(move |access| slot(access.buffer) == read);
    let starts = || {
        let all = accesses().chain([&dot.a, &dot.b, &dot.c]);
        all.flat_map(|access| &access.starts).map(|start| slot(start.buffer))
    };
    let gathered = |inst: &LoopInst| match inst {
        LoopInst::Gather { read, .. } => Some(slot(epilogue.reads[*read as usize].buffer)),
        _ => None,
    };
    let yields = |&read: &u32| {
        of(read).next().is_some()
            && of(read).all(|access| dot.yields(access))
            && ![&dot.a, &dot.b].into_iter().any(|access| slot(access.buffer) == read)
            && !starts().chain(epilogue.insts.iter().filter_map(gathered)).any(|at| at == read)
    };
    reads.iter().copied().filter(yields).map(|read| (slot(dot.c.buffer), read)).collect()
}

/// Whether every read of slot `read` is the very access of write `write`, in no later stage.
fn reads_as_it_writes(rows: &RowLoop, buffers: &[u32], write: usize, read: u32) -> bool {
    let target = &rows.writes[write];
    let of_slot = |access: &Access| buffers[access.buffer as usize] == read;
    let starts_there =
        |access: &Access| access.starts.iter().any(|s| buffers[s.buffer as usize] == read);
    if rows.reads.iter().chain(&rows.writes).any(starts_there) {
        return false;
    }
    let alike = |access: &Access| {
        access.dtype.size() == target.dtype.size()
            && access.offset == target.offset
            && access.strides == target.strides
            && access.starts == target.starts
    };
    if !rows.reads.iter().filter(|a| of_slot(a)).all(alike) {
        return false;
    }
    let stores = |s: &Sink| matches!(s, Sink::Store { write: w, .. } if *w as usize == write);
    let stored = rows.stages.iter().position(|stage| stage.sinks.iter().any(stores));
    let Some(stored) = stored.filter(|&at| rows.stages[at].per == Per::Columns) else {
        return false;
    };
    let plain = |inst: &LoopInst| match inst {
        LoopInst::Scalar(Inst::Input { input, .. }) => of_slot(&rows.reads[*input as usize]),
        _ => false,
    };
    let gathered = |inst: &LoopInst| match inst {
        LoopInst::Gather { read: r, .. } => of_slot(&rows.reads[*r as usize]),
        _ => false,
    };
    !rows.stages[stored + 1..].iter().flat_map(|s| &s.insts).any(plain)
        && !rows.stages.iter().flat_map(|s| &s.insts).any(gathered)
}
