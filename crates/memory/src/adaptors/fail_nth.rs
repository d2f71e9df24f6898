//! Faults on purpose: the n-th request fails, once.

use super::forward;
use crate::{AllocError, Block, Cause, Driver, MemoryResource, Stats, Stream};

/// Refuses the n-th request from now on, counted from 1, and those after it not.
pub struct FailNth<R> {
    inner: R,
    countdown: u64,
}

impl<R: MemoryResource> FailNth<R> {
    /// `inner` whose `nth` request fails; 0 is none.
    pub fn new(inner: R, nth: u64) -> FailNth<R> {
        FailNth { inner, countdown: nth }
    }
}

impl<R: MemoryResource> MemoryResource for FailNth<R> {
    fn allocate(
        &mut self,
        bytes: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        let fails = self.countdown == 1;
        self.countdown = self.countdown.saturating_sub(1);
        if fails {
            return Err(AllocError::new(bytes, &self.inner.stats(), driver, Cause::Injected));
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
        format!("fail_nth: {} requests to go", self.countdown)
    }

    forward!();
}
