//! One call to the driver for each block: nothing cached, no slack, every byte back at once.

use crate::names::Named;
use crate::resource::{AllocError, Cause, Chunk, ChunkState, RegionFigures, Trimmed};
use crate::{Block, Broken, Driver, MemoryResource, Region, Stats, Stream, format_bytes};

/// The driver's own allocator, a region a block. Limited by the device alone.
pub struct Platform {
    live: Named<u64, Lent>,
    next_handle: u64,
    stats: Stats,
}

struct Lent {
    region: Region,
    ordinal: u64,
}

impl Platform {
    /// A pool that is always exactly its live blocks, on a device of `capacity` bytes.
    pub fn new(capacity: u64) -> Platform {
        let stats = Stats { bytes_limit: capacity, ..Stats::default() };
        Platform { live: Named::default(), next_handle: 0, stats }
    }

    fn by_address(&self) -> Vec<(&u64, &Lent)> {
        let mut live: Vec<_> = self.live.iter().collect();
        live.sort_unstable_by_key(|(_, lent)| lent.region.base());
        live
    }
}

impl MemoryResource for Platform {
    fn allocate(
        &mut self,
        bytes: u64,
        _stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        if bytes == 0 {
            return Ok(Block::empty());
        }
        let region = match driver.obtain(bytes) {
            Ok(region) => region,
            Err(refusal) => {
                self.stats.driver_refusals += 1;
                return Err(AllocError::new(bytes, &self.stats, driver, Cause::Driver(refusal)));
            }
        };
        let handle = self.next_handle;
        self.next_handle += 1;
        self.stats.count_grow(bytes);
        self.stats.count_alloc(bytes, bytes);
        let block = Block::new(region.base(), bytes, bytes, handle);
        let ordinal = self.stats.driver_allocs - 1;
        self.live.insert(handle, Lent { region, ordinal });
        Ok(block)
    }

    fn deallocate(&mut self, block: Block, _stream: Stream, driver: &mut dyn Driver) {
        if block.is_empty() {
            return;
        }
        let lent = self.live.remove(&block.handle()).expect("a live block of this pool comes back");
        self.stats.count_free(block.requested(), lent.region.bytes());
        self.stats.count_shrink(lent.region.bytes());
        driver.release(lent.region);
    }

    fn synchronize(&mut self, _driver: &mut dyn Driver) {
        // Every block goes back at once.
    }

    fn trim(&mut self, _driver: &mut dyn Driver) -> Trimmed {
        // A region here is a live block: there is nothing to give back and nothing that is pinned.
        Trimmed::default()
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn reset_peak(&mut self) {
        self.stats.reset_peak();
    }

    fn upstream(&self) -> Option<&dyn MemoryResource> {
        None
    }

    fn describe(&self) -> String {
        let limit = format_bytes(self.stats.bytes_limit);
        format!("platform: a driver call a block, limited by the device ({limit})")
    }

    fn regions(&self) -> Vec<RegionFigures> {
        let figures = |(_, lent): (&u64, &Lent)| RegionFigures {
            base: lent.region.base(),
            bytes: lent.region.bytes(),
            ordinal: lent.ordinal,
            bytes_in_use: lent.region.bytes(),
            live_blocks: 1,
            largest_free: 0,
        };
        self.by_address().into_iter().map(figures).collect()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let chunk = |(handle, lent): (&u64, &Lent)| Chunk {
            address: lent.region.base(),
            bytes: lent.region.bytes(),
            requested: lent.region.bytes(),
            handle: *handle,
            state: ChunkState::Used,
        };
        self.by_address().into_iter().map(chunk).collect()
    }

    fn check(&self) -> Result<(), Broken> {
        self.stats.check()?;
        let held: u64 = self.live.values().map(|lent| lent.region.bytes()).sum();
        if held != self.stats.pool_bytes || held != self.stats.bytes_in_use {
            return Err(Broken(format!("{held} bytes are lent, {:?}", self.stats)));
        }
        Ok(())
    }
}
