//! What an export is made from.

use vramlab_memory::Heap;
use vramlab_memory::ledger::{Ledger, Owner, OwnerId, Site};

/// The memory of a device at one moment, with its events.
pub struct Recording<'a> {
    /// The heap and its ledger.
    pub heap: &'a Heap,
    /// The device's name: `cpu`, `dry:80GiB`.
    pub device: &'a str,
    /// The compile cache, entry by entry.
    pub executables: &'a [Executable],
    /// Time 0 of the ledger's clock, in nanoseconds since 1970; 0 where it is not known.
    pub epoch_ns: u64,
    /// The moment of the export on the ledger's clock, in nanoseconds.
    pub now_ns: u64,
}

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// The functions that share it.
    pub name: String,
    /// Bytes of its code.
    pub bytes: u64,
}

impl Recording<'_> {
    pub(crate) fn ledger(&self) -> &Ledger {
        self.heap.ledger()
    }

    /// The owner's name as every table prints it.
    pub(crate) fn owner(&self, owner: OwnerId) -> String {
        match self.ledger().owner(owner) {
            Owner::Unknown => "unknown".into(),
            owner => owner.to_string(),
        }
    }

    /// Bytes of regions that were held where the kept events begin.
    pub(crate) fn pool_at_start(&self) -> u64 {
        let changes = self.ledger().events().map(crate::fold::pool_change);
        let change: i128 = changes.map(i128::from).sum();
        u64::try_from(i128::from(self.ledger().totals().pool) - change).unwrap_or(0)
    }
}

/// The file name under which a place stands: a cell is a file there.
pub(crate) fn file_of(site: Site) -> String {
    match site.cell {
        0 => String::new(),
        cell => format!("cell {cell}"),
    }
}
