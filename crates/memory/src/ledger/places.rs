//! The live blocks of a ledger, and what an event does to them.

use super::event::{Event, EventKind, Live, NOBODY};
use crate::BlockId;

/// The live blocks, each at the place that its name tells.
#[derive(Clone, Default)]
pub(super) struct Places {
    pub(super) slots: Vec<Live>,
    pub(super) vacant: Vec<u32>,
    pub(super) count: usize,
}

impl Places {
    pub(super) fn get(&self, block: BlockId) -> Option<&Live> {
        self.slots.get(block.place()).filter(|live| live.block == block && block != NOBODY)
    }

    pub(super) fn get_mut(&mut self, block: BlockId) -> Option<&mut Live> {
        self.slots.get_mut(block.place()).filter(|live| live.block == block && block != NOBODY)
    }

    pub(super) fn insert(&mut self, live: Live) {
        let place = live.block.place();
        if place >= self.slots.len() {
            self.slots.resize(place + 1, Live::default());
        }
        self.count += 1;
        self.slots[place] = live;
    }

    pub(super) fn remove(&mut self, block: BlockId) -> Option<Live> {
        let gone = std::mem::take(self.get_mut(block)?);
        self.count -= 1;
        Some(gone)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Live> {
        self.slots.iter().filter(|live| live.block != NOBODY)
    }

    pub(super) fn in_order(&self) -> Vec<Live> {
        let mut all: Vec<Live> = self.iter().copied().collect();
        all.sort_unstable_by_key(|live| live.block);
        all
    }
}

/// What an event does to the set of live blocks. `changed` is told what went and what came.
pub(super) fn apply(
    live: &mut Places,
    event: &Event,
    mut changed: impl FnMut(Option<&Live>, Option<&Live>),
) {
    match event.kind {
        EventKind::Alloc => {
            let made = Live::made_by(event);
            changed(None, Some(&made));
            live.insert(made);
        }
        EventKind::Free => {
            if let Some(gone) = live.remove(event.block) {
                changed(Some(&gone), None);
            }
        }
        EventKind::OwnerChange => {
            if let Some(block) = live.get_mut(event.block) {
                block.owner = event.owner;
            }
        }
        EventKind::Migrate => {
            if let Some(block) = live.get_mut(event.block) {
                let before = *block;
                (block.address, block.granted, block.pool) =
                    (event.address, event.granted, event.pool);
                changed(Some(&before), Some(block));
            }
        }
        _ => {}
    }
}
