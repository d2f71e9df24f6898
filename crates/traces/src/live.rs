//! What is out while a trace is read: the one fold that every reader and report shares.

use crate::record::{Kind, Record};
use vramlab_memory::names::Named;

/// A block that is out.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Where it lies.
    pub address: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes held for it; what was asked for where the trace does not say.
    pub held: u64,
    /// Whose.
    pub owner: u32,
}

/// The blocks that are out, and what they sum up to.
#[derive(Default)]
pub struct Live {
    blocks: Named<u64, Block>,
    /// Sums of what a file claims may pass 64 bits.
    requested: u128,
    /// Returns of blocks that were never handed out, or twice.
    pub strays: u64,
    /// Blocks that were handed out under a name that was still out.
    pub twice: u64,
}

impl Live {
    /// Takes an event.
    pub fn take(&mut self, record: &Record) {
        match record.kind {
            Kind::Alloc => self.alloc(record),
            Kind::Free => match self.blocks.remove(&record.name) {
                Some(block) => self.gone(&block),
                None => self.strays += 1,
            },
            Kind::Give => {
                if let Some(block) = self.blocks.get_mut(&record.name) {
                    block.owner = record.owner;
                }
            }
            Kind::Move => {
                if let Some(block) = self.blocks.get_mut(&record.name) {
                    block.address = record.address;
                    block.held = record.granted;
                }
            }
            _ => {}
        }
    }

    fn alloc(&mut self, record: &Record) {
        let block = Block {
            address: record.address,
            bytes: record.bytes,
            held: record.granted.max(record.bytes),
            owner: record.owner,
        };
        self.requested += u128::from(block.bytes);
        if let Some(lost) = self.blocks.insert(record.name, block) {
            self.gone(&lost);
            self.twice += 1;
        }
    }

    fn gone(&mut self, block: &Block) {
        self.requested -= u128::from(block.bytes);
    }

    /// Bytes asked for by what is out, at most what 64 bits hold.
    pub fn requested(&self) -> u64 {
        u64::try_from(self.requested).unwrap_or(u64::MAX)
    }

    /// The blocks, in no order.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.blocks.values()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.blocks.len()
    }
}
