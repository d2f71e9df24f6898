//! Which bytes to overwrite so that a use before the first write, or after the free, shows.
//!
//! Nothing here touches memory: the marks are handed to the device, which fills the ranges.

use super::forward;
use crate::{AllocError, Block, Driver, MemoryResource, Stats, Stream};

/// Why a range is to be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// Just handed out: nothing may rely on its bytes.
    Allocated,
    /// Just taken back: nothing may read it.
    Freed,
}

/// A range to overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Why.
    pub kind: MarkKind,
}

/// Keeps a list of the ranges that changed hands.
pub struct Poison<R> {
    inner: R,
    marks: Vec<Mark>,
}

impl<R: MemoryResource> Poison<R> {
    /// `inner` with its blocks marked as they come and go.
    pub fn new(inner: R) -> Poison<R> {
        Poison { inner, marks: Vec::new() }
    }

    /// The ranges since the last call, in order. A range may have been returned to the driver since.
    pub fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    fn mark(&mut self, block: &Block, kind: MarkKind) {
        if !block.is_empty() {
            let (address, bytes) = (block.address(), block.granted());
            self.marks.push(Mark { address, bytes, kind });
        }
    }
}

impl<R: MemoryResource> MemoryResource for Poison<R> {
    fn allocate(
        &mut self,
        bytes: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        let block = self.inner.allocate(bytes, stream, driver)?;
        self.mark(&block, MarkKind::Allocated);
        Ok(block)
    }

    fn deallocate(&mut self, block: Block, stream: Stream, driver: &mut dyn Driver) {
        self.mark(&block, MarkKind::Freed);
        self.inner.deallocate(block, stream, driver);
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn describe(&self) -> String {
        "poison: marks what changes hands".to_string()
    }

    forward!();
}
