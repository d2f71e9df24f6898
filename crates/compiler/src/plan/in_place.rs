//! Working in place: a map may write over an operand that nobody reads afterwards, when it reads
//! and writes each element at the same place.

use super::{Draft, Home, Planner};
use vramlab_ir::Inst;
use vramlab_ir::kernel::{Access, Body, LoopInst, Per, RowLoop, Sink};

impl Planner<'_> {
    /// Walks the kernels in order and lets each result of a kernel take over an operand's bytes.
    pub(super) fn work_in_place(&mut self, drafts: &[Draft]) {
        for (draft, time) in drafts.iter().zip(1..) {
            let Body::Rows(rows) = &draft.kernel.body else { continue };
            for (index, write) in rows.writes.iter().enumerate() {
                let slot = draft.kernel.buffers[write.buffer as usize];
                if self.lives[slot as usize].writers != 1 {
                    continue;
                }
                let operand = draft
                    .reads
                    .iter()
                    .copied()
                    .find(|&read| self.takes_over(time, draft, rows, index, slot, read));
                if let Some(operand) = operand {
                    let (into, from) =
                        (self.storage[operand as usize], self.storage[slot as usize]);
                    self.merge(into, from);
                }
            }
        }
    }

    fn takes_over(
        &self,
        time: usize,
        draft: &Draft,
        rows: &RowLoop,
        write: usize,
        slot: u32,
        read: u32,
    ) -> bool {
        let own = self.storage[slot as usize];
        let other = self.storage[read as usize];
        let storage = &self.storages[other as usize];
        let dies = storage.last == time
            && self.lives[read as usize].last == time
            && own != other
            && self.bytes[read as usize] == self.bytes[slot as usize];
        let yields = match storage.home {
            Home::Argument(argument) => self.donated[argument as usize],
            Home::Result(_) => false,
            Home::Temporary => true,
        };
        dies && yields && reads_as_it_writes(draft, rows, write, read)
    }
}

/// Whether every read of slot `read` is the very access of write `write`, in no later stage.
fn reads_as_it_writes(draft: &Draft, rows: &RowLoop, write: usize, read: u32) -> bool {
    let target = &rows.writes[write];
    let slot_of = |access: &Access| draft.kernel.buffers[access.buffer as usize];
    let starts_there = |access: &Access| {
        access.starts.iter().any(|s| draft.kernel.buffers[s.buffer as usize] == read)
    };
    if rows.reads.iter().chain(&rows.writes).any(starts_there) {
        return false;
    }
    let alike = |access: &Access| {
        access.dtype.size() == target.dtype.size()
            && access.offset == target.offset
            && access.strides == target.strides
            && access.starts == target.starts
    };
    if !rows.reads.iter().filter(|a| slot_of(a) == read).all(alike) {
        return false;
    }
    let stored = rows.stages.iter().position(|stage| {
        let stores = |s: &Sink| matches!(s, Sink::Store { write: w, .. } if *w as usize == write);
        stage.sinks.iter().any(stores)
    });
    let Some(stored) = stored else { return false };
    if rows.stages[stored].per == Per::Row {
        return false;
    }
    let reads_it = |inst: &LoopInst| match inst {
        LoopInst::Scalar(Inst::Input { input, .. }) => {
            slot_of(&rows.reads[*input as usize]) == read
        }
        LoopInst::Gather { read: r, .. } => slot_of(&rows.reads[*r as usize]) == read,
        _ => false,
    };
    let gathered = |inst: &LoopInst| matches!(inst, LoopInst::Gather { read: r, .. } if slot_of(&rows.reads[*r as usize]) == read);
    !rows.stages[stored + 1..].iter().flat_map(|s| &s.insts).any(reads_it)
        && !rows.stages.iter().flat_map(|s| &s.insts).any(gathered)
}
