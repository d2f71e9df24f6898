//! The running state of a ledger: what every writer that goes through the events needs beside the event itself.

use crate::recording::Recording;
use std::collections::HashMap;
use vramlab_memory::BlockId;
use vramlab_memory::ledger::{Event, EventKind, Live};

/// The live blocks and the totals after some events.
pub(crate) struct Fold {
    pub live: HashMap<BlockId, Live>,
    /// Bytes that live blocks asked for.
    pub requested: u64,
    /// Bytes that live blocks hold.
    pub in_use: u64,
    /// Bytes held from the driver.
    pub pool: u64,
}

impl Fold {
    /// The state where the kept events begin.
    pub fn at_start(recording: &Recording<'_>) -> Fold {
        let checkpoint = recording.ledger().checkpoint();
        Fold {
            requested: checkpoint.iter().map(|live| live.requested).sum(),
            in_use: checkpoint.iter().map(|live| live.granted).sum(),
            pool: recording.pool_at_start(),
            live: checkpoint.into_iter().map(|live| (live.block, live)).collect(),
        }
    }

    /// Applies an event; gives the block as it was, where it was live.
    pub fn apply(&mut self, event: &Event) -> Option<Live> {
        self.pool = self.pool.saturating_add_signed(pool_change(event));
        match event.kind {
            EventKind::Alloc => {
                self.requested += event.requested;
                self.in_use += event.granted;
                self.live.insert(event.block, Live::made_by(event))
            }
            EventKind::Free => {
                let gone = self.live.remove(&event.block)?;
                self.requested -= gone.requested;
                self.in_use -= gone.granted;
                Some(gone)
            }
            EventKind::Migrate => {
                let block = self.live.get_mut(&event.block)?;
                let before = *block;
                (block.address, block.granted, block.pool) =
                    (event.address, event.granted, event.pool);
                self.in_use = self.in_use - before.granted + event.granted;
                Some(before)
            }
            EventKind::OwnerChange => {
                let block = self.live.get_mut(&event.block)?;
                let before = *block;
                block.owner = event.owner;
                Some(before)
            }
            _ => None,
        }
    }
}

/// What an event does to the bytes held from the driver.
pub(crate) fn pool_change(event: &Event) -> i64 {
    let bytes = i64::try_from(event.granted).unwrap_or(i64::MAX);
    match event.kind {
        EventKind::RegionGrow | EventKind::Map => bytes,
        EventKind::RegionRelease | EventKind::Unmap => -bytes,
        _ => 0,
    }
}
