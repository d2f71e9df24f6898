//! Where segments come from and when they go: new ones, expandable ones, and what is given back under pressure.

use super::{
    Caching, LARGE_POOL, LARGE_SEGMENT, NONE, Piece, PieceState, SMALL_POOL, SMALL_SEGMENT,
    Segment, pool_of, segment_bytes,
};
use crate::resource::Cause;
use crate::{Driver, Refusal, RefusalCause, Region, Stream, round_up};

impl Caching {
    /// A block of at least `rounded` bytes from the driver, in no list, giving back cached segments where that helps.
    pub(super) fn grow(
        &mut self,
        rounded: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<u32, Cause> {
        if self.options.collects() {
            self.collect_old(driver);
        }
        let first = self.ask_driver(rounded, stream, driver);
        let Err(_) = first else { return first };
        if self.release_oversized(rounded, stream, driver) {
            let second = self.ask_driver(rounded, stream, driver);
            let Err(_) = second else { return second };
        }
        self.release_cached(driver);
        self.torch.num_alloc_retries += 1;
        self.ask_driver(rounded, stream, driver)
    }

    fn ask_driver(
        &mut self,
        rounded: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<u32, Cause> {
        let bytes = segment_bytes(rounded);
        if self.options.limited && bytes > self.options.limit - self.stats.pool_bytes {
            return Err(Cause::Limit);
        }
        if self.options.expandable_segments {
            return self.expand(rounded, stream, driver);
        }
        match driver.obtain(bytes) {
            Ok(region) => Ok(self.add_segment(region, stream, pool_of(rounded))),
            Err(refusal) => {
                self.stats.driver_refusals += 1;
                Err(Cause::Driver(refusal))
            }
        }
    }

    /// A new segment; its one block is in no list.
    pub(super) fn add_segment(&mut self, region: Region, stream: Stream, pool: usize) -> u32 {
        let (base, bytes) = (region.base(), region.bytes());
        self.stats.count_grow(bytes);
        self.count_segment(pool, bytes);
        self.add_addresses(base, bytes, stream, pool, Some(region), PieceState::Free)
    }

    fn add_addresses(
        &mut self,
        base: u64,
        bytes: u64,
        stream: Stream,
        pool: usize,
        region: Option<Region>,
        state: PieceState,
    ) -> u32 {
        let index = self.next_segment;
        self.next_segment += 1;
        let piece = Piece {
            address: base,
            bytes,
            requested: 0,
            segment: index,
            prev: NONE,
            next: NONE,
            state,
            free_since: 0,
        };
        let first = self.add_piece(piece);
        let ordinal = u64::from(index);
        let segment = Segment { base, bytes, stream, pool, ordinal, first, region };
        self.segments.insert(index, segment);
        if !self.streams.contains(&stream) {
            self.streams.push(stream);
        }
        first
    }

    /// Gives back the segment of a free block that is a whole one; the block leaves its list.
    fn release(&mut self, slot: u32, driver: &mut dyn Driver) {
        self.unlist(slot);
        let index = self.piece(slot).segment;
        let segment = self.segments.remove(&index).expect("a block lies in a segment");
        let region = segment.region.expect("an expandable segment is unmapped, not released");
        self.stats.count_shrink(region.bytes());
        self.count_segment_gone(segment.pool, region.bytes());
        self.vacate(slot);
        driver.release(region);
    }

    fn is_whole(&self, slot: u32) -> bool {
        let piece = self.piece(slot);
        piece.prev == NONE && piece.next == NONE && self.segment_of(slot).region.is_some()
    }

    /// Gives back every whole segment, and every mapped granule of expandable ones that no block touches.
    pub(super) fn release_cached(&mut self, driver: &mut dyn Driver) {
        self.torch.num_sync_all_streams += 1;
        for pool in [LARGE_POOL, SMALL_POOL] {
            let free: Vec<u32> = self.pools[pool].free.iter().map(|key| key.3).collect();
            for slot in free {
                if self.is_whole(slot) {
                    self.release(slot, driver);
                } else if self.segment_of(slot).region.is_none() {
                    self.unmap(slot, driver);
                }
            }
        }
    }

    /// Under a maximum split size: gives back one oversized block that is large enough, or several, the largest first.
    fn release_oversized(&mut self, rounded: u64, stream: Stream, driver: &mut dyn Driver) -> bool {
        let max_split = self.options.max_split;
        if max_split == u64::MAX {
            return false;
        }
        let wanted = rounded.max(max_split);
        let pool = pool_of(rounded);
        let free = &self.pools[pool].free;
        let large = free.range((stream, wanted, 0, 0)..).next().filter(|key| key.0 == stream);
        if let Some(key) = large {
            let slot = key.3;
            return self.release_if_whole(slot, driver) > 0;
        }
        let oversized = (stream, max_split, 0, 0)..(stream, wanted, 0, 0);
        let slots: Vec<u32> = free.range(oversized).rev().map(|key| key.3).collect();
        let mut released = 0;
        for slot in slots {
            if released >= wanted {
                break;
            }
            released += self.release_if_whole(slot, driver);
        }
        released >= wanted
    }

    fn release_if_whole(&mut self, slot: u32, driver: &mut dyn Driver) -> u64 {
        if !self.is_whole(slot) {
            return 0;
        }
        let bytes = self.piece(slot).bytes;
        self.release(slot, driver);
        bytes
    }

    /// Above the threshold: gives back whole large segments of at least average age, again and again.
    fn collect_old(&mut self, driver: &mut dyn Driver) {
        let threshold = (self.options.gc_threshold * self.options.limit as f64) as u64;
        let target = self.stats.pool_bytes.saturating_sub(threshold);
        if target == 0 {
            return;
        }
        let searches = self.pools[LARGE_POOL].searches;
        let whole =
            self.pools[LARGE_POOL].free.iter().map(|key| key.3).filter(|s| self.is_whole(*s));
        let mut old: Vec<(u64, u32)> =
            whole.map(|slot| (searches - self.piece(slot).free_since, slot)).collect();
        let mut reclaimed = 0;
        while reclaimed < target && !old.is_empty() {
            let total: u64 = old.iter().map(|(age, _)| age).sum();
            let average = total as f64 / old.len() as f64;
            let (gone, kept): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|(age, _)| *age as f64 >= average);
            for (_, slot) in gone {
                reclaimed += self.release_if_whole(slot, driver);
            }
            old = kept;
        }
    }

    /// Memory mapped at the end of, or within, an expandable segment: a free block of at least `rounded` bytes.
    fn expand(
        &mut self,
        rounded: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<u32, Cause> {
        let pool = pool_of(rounded);
        let mut slot = match self.expandable(rounded, stream, pool) {
            Some(slot) => slot,
            None => self.reserve(stream, pool, driver)?,
        };
        if self.piece(slot).state == PieceState::Unmapped {
            slot = self.map(slot, rounded, driver)?;
        }
        while self.piece(slot).bytes < rounded {
            let missing = rounded - self.piece(slot).bytes;
            let next = self.piece(slot).next;
            slot = self.map(next, missing, driver)?;
        }
        self.unlist(slot);
        Ok(slot)
    }

    /// The first run of free and unmapped blocks with room, of which at least one is unmapped.
    fn expandable(&self, rounded: u64, stream: Stream, pool: usize) -> Option<u32> {
        let unmapped = self.pools[pool].unmapped.range((stream, 0, 0, 0)..);
        let starts = unmapped.take_while(|key| key.0 == stream).map(|key| {
            let prev = self.piece(key.3).prev;
            if prev != NONE && self.piece(prev).state == PieceState::Free { prev } else { key.3 }
        });
        let has_room = |start: &u32| {
            let (mut bytes, mut slot) = (0, *start);
            while slot != NONE && bytes < rounded && self.piece(slot).state != PieceState::Used {
                bytes += self.piece(slot).bytes;
                slot = self.piece(slot).next;
            }
            bytes >= rounded
        };
        starts.into_iter().find(has_room)
    }

    /// Addresses for nine eighths of the device, with nothing behind them.
    fn reserve(
        &mut self,
        stream: Stream,
        pool: usize,
        driver: &mut dyn Driver,
    ) -> Result<u32, Cause> {
        let total = driver.figures().total;
        let bytes = round_up(total + total / 8, granule(pool));
        let Some(memory) = driver.virtual_memory() else {
            let free = driver.figures().free;
            let cause = RefusalCause::Unsupported;
            return Err(Cause::Driver(Refusal { asked: bytes, free, cause }));
        };
        let base = memory.reserve(bytes).map_err(Cause::Driver)?;
        let slot = self.add_addresses(base, bytes, stream, pool, None, PieceState::Unmapped);
        self.list_unmapped(slot);
        Ok(slot)
    }

    fn list_unmapped(&mut self, slot: u32) {
        let key = self.key(slot);
        let pool = self.segment_of(slot).pool;
        self.pools[pool].unmapped.insert(key);
    }

    /// Puts memory behind the beginning of an unmapped block, in whole granules; gives the free block that results.
    fn map(&mut self, slot: u32, bytes: u64, driver: &mut dyn Driver) -> Result<u32, Cause> {
        let granule = granule(self.segment_of(slot).pool);
        let piece = *self.piece(slot);
        let bytes = round_up(bytes, granule).min(piece.bytes);
        self.map_granules(piece.address, bytes, granule, driver)?;
        self.count_mapped(slot, bytes);
        self.unlist(slot);
        if bytes < piece.bytes {
            let rest = self.cut(slot, bytes);
            self.list_unmapped(rest);
        }
        self.piece_mut(slot).state = PieceState::Free;
        let whole = self.join_neighbours(slot);
        self.list(whole);
        Ok(whole)
    }

    /// All granules or none.
    fn map_granules(
        &mut self,
        address: u64,
        bytes: u64,
        granule: u64,
        driver: &mut dyn Driver,
    ) -> Result<(), Cause> {
        let memory = driver.virtual_memory().expect("addresses were reserved");
        for done in (0..bytes).step_by(granule as usize) {
            if let Err(refusal) = memory.map(address + done, granule) {
                for at in (0..done).step_by(granule as usize) {
                    memory.unmap(address + at, granule);
                }
                self.stats.driver_refusals += 1;
                return Err(Cause::Driver(refusal));
            }
        }
        for _ in (0..bytes).step_by(granule as usize) {
            self.stats.count_grow(granule);
        }
        Ok(())
    }

    /// Takes the memory away from behind the whole granules of a free block; what is left at its ends stays free.
    fn unmap(&mut self, slot: u32, driver: &mut dyn Driver) {
        let segment = self.segment_of(slot);
        let (granule, base) = (granule(segment.pool), segment.base);
        let piece = *self.piece(slot);
        let first = base + round_up(piece.address - base, granule);
        let last = base + (piece.address + piece.bytes - base) / granule * granule;
        if last <= first {
            return;
        }
        self.count_unmapped(slot, last - first);
        self.unlist(slot);
        let mut slot = slot;
        if first > piece.address {
            let middle = self.cut(slot, first - piece.address);
            self.list(slot);
            slot = middle;
        }
        if last < piece.address + piece.bytes {
            let rest = self.cut(slot, last - first);
            self.list(rest);
        }
        let memory = driver.virtual_memory().expect("addresses were reserved");
        for at in (first..last).step_by(granule as usize) {
            memory.unmap(at, granule);
            self.stats.count_shrink(granule);
        }
        self.piece_mut(slot).state = PieceState::Unmapped;
        let whole = self.join_neighbours(slot);
        self.list_unmapped(whole);
        self.drop_if_unmapped(whole, driver);
    }

    /// An expandable segment with nothing behind it gives its addresses back too.
    fn drop_if_unmapped(&mut self, slot: u32, driver: &mut dyn Driver) {
        let piece = *self.piece(slot);
        if piece.prev != NONE || piece.next != NONE {
            return;
        }
        self.unlist(slot);
        self.vacate(slot);
        let segment = self.segments.remove(&piece.segment).expect("a block lies in a segment");
        let memory = driver.virtual_memory().expect("addresses were reserved");
        memory.unreserve(segment.base, segment.bytes);
    }
}

/// What an expandable segment grows by.
fn granule(pool: usize) -> u64 {
    if pool == SMALL_POOL { SMALL_SEGMENT } else { LARGE_SEGMENT }
}
