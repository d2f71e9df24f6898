//! No more than so many bytes in use at once, whatever the pool below could still do.

use super::forward;
use crate::{AllocError, Block, Cause, Driver, MemoryResource, Stats, Stream, format_bytes};

/// Refuses a request that would bring the bytes in live blocks above a limit.
pub struct Limit<R> {
    inner: R,
    limit: u64,
}

impl<R: MemoryResource> Limit<R> {
    /// `inner` with at most `limit` bytes in live blocks.
    pub fn new(inner: R, limit: u64) -> Limit<R> {
        Limit { inner, limit }
    }
}

impl<R: MemoryResource> MemoryResource for Limit<R> {
    fn allocate(
        &mut self,
        bytes: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        let refused = |inner: &R, driver: &mut dyn Driver| {
            let error = AllocError::new(bytes, &inner.stats(), driver, Cause::Limit);
            Err(AllocError { limit: self.limit, ..error })
        };
        let in_use = self.inner.stats().bytes_in_use;
        if bytes > self.limit.saturating_sub(in_use) {
            return refused(&self.inner, driver);
        }
        let block = self.inner.allocate(bytes, stream, driver)?;
        // Slack is known only now.
        if block.granted() > self.limit - in_use {
            self.inner.deallocate(block, stream, driver);
            return refused(&self.inner, driver);
        }
        Ok(block)
    }

    fn deallocate(&mut self, block: Block, stream: Stream, driver: &mut dyn Driver) {
        self.inner.deallocate(block, stream, driver);
    }

    fn stats(&self) -> Stats {
        // The limit is on blocks, the pool below may be larger: the figure that binds first is told.
        let below = self.inner.stats();
        let limit = self.limit.max(below.pool_bytes).min(below.bytes_limit);
        Stats { bytes_limit: limit, ..below }
    }

    fn describe(&self) -> String {
        format!("limit: {} in use", format_bytes(self.limit))
    }

    forward!();
}
