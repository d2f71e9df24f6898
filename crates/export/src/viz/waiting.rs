//! Blocks that were given back and are still in use by a stream: PyTorch's `active_pending_free`.

use crate::recording::Recording;
use std::collections::BTreeMap;
use vramlab_memory::ChunkState;
use vramlab_memory::ledger::{Event, EventKind};

/// A block that has no `free_completed` yet.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    /// Which of the kept events gave it back.
    pub index: usize,
    pub requested: u64,
    pub granted: u64,
}

/// What was given back into a chunk that a stream still uses, and was not handed out again.
pub(super) fn waiting_frees(recording: &Recording<'_>) -> BTreeMap<u64, Waiting> {
    let chunks = recording.heap.chunks().into_iter();
    let pending = chunks.filter(|chunk| chunk.state == ChunkState::Pending);
    let pending: BTreeMap<u64, u64> =
        pending.map(|chunk| (chunk.address, chunk.address + chunk.bytes)).collect();
    let mut waiting = BTreeMap::new();
    if pending.is_empty() {
        return waiting;
    }
    let lies_within = |event: &Event| {
        let chunk = pending.range(..=event.address).next_back();
        chunk.is_some_and(|(_, end)| event.address + event.granted <= *end)
    };
    for (index, event) in recording.ledger().events().enumerate() {
        let Event { address, requested, granted, .. } = *event;
        match event.kind {
            EventKind::Free if lies_within(event) => {
                waiting.insert(address, Waiting { index, requested, granted });
            }
            EventKind::Alloc | EventKind::Migrate | EventKind::Unmap => {
                remove_overlaps(&mut waiting, address, address + granted);
            }
            _ => {}
        }
    }
    waiting
}

fn remove_overlaps(waiting: &mut BTreeMap<u64, Waiting>, start: u64, end: u64) {
    while let Some((&address, free)) = waiting.range(..end).next_back() {
        if address + free.granted <= start {
            return;
        }
        waiting.remove(&address);
    }
}
