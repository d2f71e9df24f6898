//! The small trait that every allocator and every adaptor implements, and the facts of a failure.

use crate::{
    Block, BlockId, Broken, Driver, DriverFigures, Refusal, Stats, Stream, TorchStats, format_bytes,
};
use std::fmt;

/// Hands out blocks of a device and takes them back.
///
/// The driver comes with each call and is always the same one for one stack. Every implementation passes
/// [`crate::conformance`]. A failed call leaves the blocks, the pool and the figures as they were, except for
/// counters of refusals and for what a rule of the mode allows on the way (a collection of empty regions).
pub trait MemoryResource: Send {
    /// A block of at least `bytes`, aligned to 256. Zero bytes give [`Block::empty`].
    fn allocate(
        &mut self,
        bytes: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError>;

    /// Takes back a block of this stack. It cannot fail; a block of another stack is a bug and panics.
    fn deallocate(&mut self, block: Block, stream: Stream, driver: &mut dyn Driver);

    /// The work on all streams is done: blocks that were freed on one are free for all, and a pool with a release
    /// threshold gives back what lies above it. Where no rule speaks of streams, nothing happens.
    fn synchronize(&mut self, driver: &mut dyn Driver);

    /// Gives back to the driver what holds no block, whatever the mode's own rules for that are.
    fn trim(&mut self, driver: &mut dyn Driver) -> Trimmed;

    /// The figures now.
    fn stats(&self) -> Stats;

    /// Peaks begin again at the present values.
    fn reset_peak(&mut self);

    /// The figures as PyTorch's allocator counts them; `None` for an allocator that is not of its kind.
    fn torch_stats(&self) -> Option<&TorchStats> {
        self.upstream()?.torch_stats()
    }

    /// What lies below within the stack; `None` where the driver is next.
    fn upstream(&self) -> Option<&dyn MemoryResource>;

    /// One line: its name and its settings.
    fn describe(&self) -> String;

    /// The regions held from the driver, by address.
    fn regions(&self) -> Vec<RegionFigures>;

    /// Every chunk, used and free, by address: they tile the regions.
    fn chunks(&self) -> Vec<Chunk>;

    /// Checks the whole state, slowly: statistics, tiling, lists.
    fn check(&self) -> Result<(), Broken>;
}

/// One region as a map draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionFigures {
    /// Where it begins.
    pub base: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Which of the pool's driver calls brought it, from 0.
    pub ordinal: u64,
    /// Bytes of it in live blocks, slack included.
    pub bytes_in_use: u64,
    /// Live blocks in it.
    pub live_blocks: u64,
    /// Its largest free chunk in bytes.
    pub largest_free: u64,
}

/// What a chunk is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkState {
    /// Handed out.
    Used,
    /// Cached and ready to be handed out.
    Free,
    /// Freed by its owner and not yet reusable, because a stream may still use it.
    Pending,
}

/// One chunk as a map draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// What its owner asked for; 0 where it is free.
    pub requested: u64,
    /// The resource's handle, as in [`Block::handle`].
    pub handle: u64,
    /// Used, free or pending.
    pub state: ChunkState,
}

/// What a trim gave back and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Bytes that went back to the driver.
    pub released_bytes: u64,
    /// Regions that went back.
    pub released_regions: u64,
    /// Regions that stay, each with the blocks that pin it.
    pub kept: Vec<Kept>,
}

/// A region that stays because a block lies in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where the region begins.
    pub base: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes of it in live blocks.
    pub bytes_in_use: u64,
    /// Addresses of the blocks that pin it, lowest first.
    pub pinned_by: Vec<u64>,
    /// The same blocks by name, where a heap filled them in.
    pub blocks: Vec<BlockId>,
}

impl Trimmed {
    /// Bytes that stay with the pool.
    pub fn kept_bytes(&self) -> u64 {
        self.kept.iter().map(|region| region.bytes).sum()
    }
}

/// Which rule said no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The pool may not grow by that much.
    Limit,
    /// The pool may grow, and the driver refused.
    Driver(Refusal),
    /// A fault that was put in on purpose.
    Injected,
}

/// A failed allocation: facts, from which a verdict is drawn ([`crate::oom`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocError {
    /// Bytes that were asked for.
    pub asked: u64,
    /// What the pool may never exceed.
    pub limit: u64,
    /// Bytes in live blocks, slack included.
    pub in_use: u64,
    /// Bytes held from the driver.
    pub pool: u64,
    /// The largest free chunk.
    pub largest_free: u64,
    /// Size of the device.
    pub device: u64,
    /// Bytes free at the driver.
    pub driver_free: u64,
    /// Bytes that other processes hold.
    pub others: u64,
    /// Which rule said no.
    pub cause: Cause,
}

impl AllocError {
    /// The facts of a failure, read off the pool and the driver.
    pub fn new(asked: u64, stats: &Stats, driver: &dyn Driver, cause: Cause) -> AllocError {
        AllocError::of(asked, stats, &driver.figures(), cause)
    }

    /// The facts of a failure on a device with these figures.
    pub fn of(asked: u64, stats: &Stats, device: &DriverFigures, cause: Cause) -> AllocError {
        AllocError {
            asked,
            limit: stats.bytes_limit,
            in_use: stats.bytes_in_use,
            pool: stats.pool_bytes,
            largest_free: stats.largest_free_block_bytes,
            device: device.total,
            driver_free: device.free,
            others: device.others,
            cause,
        }
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "asked {} with {} in use of a pool of {} (limit {}, largest free {}, driver free {})",
            format_bytes(self.asked),
            format_bytes(self.in_use),
            format_bytes(self.pool),
            format_bytes(self.limit),
            format_bytes(self.largest_free),
            format_bytes(self.driver_free)
        )
    }
}

impl std::error::Error for AllocError {}
