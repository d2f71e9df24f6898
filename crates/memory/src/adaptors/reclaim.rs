//! A second chance: on failure, whoever holds blocks that can go is asked for them, once.

use super::forward;
use crate::{AllocError, Block, Driver, MemoryResource, Stats, Stream};

/// Told how many bytes are wanted, gives up blocks.
pub type GiveUp = Box<dyn FnMut(u64) -> Vec<Block> + Send>;

/// Asks a hook for blocks when a request fails, takes them back, and tries again.
pub struct Reclaim<R> {
    inner: R,
    give_up: GiveUp,
}

impl<R: MemoryResource> Reclaim<R> {
    /// `inner` with a hook that gives up blocks of it.
    pub fn new(inner: R, give_up: GiveUp) -> Reclaim<R> {
        Reclaim { inner, give_up }
    }
}

impl<R: MemoryResource> MemoryResource for Reclaim<R> {
    fn allocate(
        &mut self,
        bytes: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        let error = match self.inner.allocate(bytes, stream, driver) {
            Ok(block) => return Ok(block),
            Err(error) => error,
        };
        let given_up = (self.give_up)(bytes);
        if given_up.is_empty() {
            return Err(error);
        }
        for block in given_up {
            self.inner.deallocate(block, stream, driver);
        }
        self.inner.allocate(bytes, stream, driver)
    }

    fn deallocate(&mut self, block: Block, stream: Stream, driver: &mut dyn Driver) {
        self.inner.deallocate(block, stream, driver);
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn describe(&self) -> String {
        "reclaim: asks for blocks that can go, once".to_string()
    }

    forward!();
}
