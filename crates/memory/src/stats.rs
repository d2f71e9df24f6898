//! The figures of a pool, under the names that JAX gives them.

use std::fmt;

/// What an allocator holds and has done. All bytes; "in use" counts what was granted, slack included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes that live blocks asked for.
    pub requested_bytes: u64,
    /// Bytes that live blocks hold: requested and slack.
    pub bytes_in_use: u64,
    /// The most that was in use since the peak was reset.
    pub peak_bytes_in_use: u64,
    /// The most that was requested at once since the peak was reset.
    pub peak_requested_bytes: u64,
    /// What the pool may never exceed.
    pub bytes_limit: u64,
    /// The largest free chunk in the pool.
    pub largest_free_block_bytes: u64,
    /// Bytes held from the driver.
    pub pool_bytes: u64,
    /// The most that was held from the driver since the peak was reset.
    pub peak_pool_bytes: u64,
    /// The largest block that was ever handed out.
    pub largest_alloc_size: u64,
    /// Blocks handed out so far.
    pub num_allocs: u64,
    /// Blocks taken back so far.
    pub num_frees: u64,
    /// Regions that the driver gave.
    pub driver_allocs: u64,
    /// Regions that went back to the driver.
    pub driver_frees: u64,
    /// Requests that the driver refused.
    pub driver_refusals: u64,
}

/// A broken invariant: which one, and the figures that break it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant: {}", self.0)
    }
}

impl std::error::Error for Broken {}

impl Stats {
    /// Held for live blocks beyond what they asked for.
    pub fn slack_bytes(&self) -> u64 {
        self.bytes_in_use - self.requested_bytes
    }

    /// Held from the driver and in no live block.
    pub fn free_bytes(&self) -> u64 {
        self.pool_bytes - self.bytes_in_use
    }

    /// Blocks that are out now.
    pub fn live_blocks(&self) -> u64 {
        self.num_allocs - self.num_frees
    }

    /// Calls to the driver, refused ones included.
    pub fn driver_calls(&self) -> u64 {
        self.driver_allocs + self.driver_frees + self.driver_refusals
    }

    /// The part of the free bytes that lies outside the largest free chunk; 0 for a pool with nothing free.
    pub fn fragmentation(&self) -> f64 {
        let free = self.free_bytes();
        if free == 0 {
            return 0.0;
        }
        (free - self.largest_free_block_bytes) as f64 / free as f64
    }

    /// `requested + slack + free == pool ≤ limit`, and what follows from it.
    pub fn check(&self) -> Result<(), Broken> {
        let broken = |what: &str| Err(Broken(format!("{what} in {self:?}")));
        if self.requested_bytes > self.bytes_in_use {
            return broken("requested > in use");
        }
        if self.bytes_in_use > self.pool_bytes {
            return broken("in use > pool");
        }
        if self.pool_bytes > self.bytes_limit {
            return broken("pool > limit");
        }
        if self.largest_free_block_bytes > self.free_bytes() {
            return broken("largest free chunk > free");
        }
        if self.num_frees > self.num_allocs {
            return broken("more frees than allocations");
        }
        if self.peak_bytes_in_use < self.bytes_in_use || self.peak_pool_bytes < self.pool_bytes {
            return broken("a peak below its present value");
        }
        Ok(())
    }

    pub(crate) fn count_alloc(&mut self, requested: u64, granted: u64) {
        self.num_allocs += 1;
        self.requested_bytes += requested;
        self.bytes_in_use += granted;
        self.peak_requested_bytes = self.peak_requested_bytes.max(self.requested_bytes);
        self.peak_bytes_in_use = self.peak_bytes_in_use.max(self.bytes_in_use);
        self.largest_alloc_size = self.largest_alloc_size.max(granted);
    }

    pub(crate) fn count_free(&mut self, requested: u64, granted: u64) {
        self.num_frees += 1;
        self.requested_bytes -= requested;
        self.bytes_in_use -= granted;
    }

    pub(crate) fn count_grow(&mut self, bytes: u64) {
        self.driver_allocs += 1;
        self.pool_bytes += bytes;
        self.peak_pool_bytes = self.peak_pool_bytes.max(self.pool_bytes);
    }

    pub(crate) fn count_shrink(&mut self, bytes: u64) {
        self.driver_frees += 1;
        self.pool_bytes -= bytes;
    }

    /// Peaks begin again at the present values.
    pub fn reset_peak(&mut self) {
        self.peak_bytes_in_use = self.bytes_in_use;
        self.peak_requested_bytes = self.requested_bytes;
        self.peak_pool_bytes = self.pool_bytes;
    }
}
