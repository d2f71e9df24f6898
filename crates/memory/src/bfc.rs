//! XLA's best-fit allocator with coalescing, rule for rule (`tsl::BFCAllocator`).
//!
//! Sizes are multiples of 256 bytes. The smallest fitting chunk is taken, the lowest address among equals; it is split
//! iff it is at least twice the request or the rest is at least 128 MiB; what is not split off is slack and counts as
//! in use. A freed chunk merges with its next neighbour, then with its previous one. The pool grows by regions; two
//! regions never join, unless `coalesce` says so (host pools).

use crate::freelist::FreeList;
use crate::resource::{AllocError, Cause, Chunk, ChunkState, Kept, RegionFigures, Trimmed};
use crate::{
    Block, Broken, Driver, MIB, MemoryResource, Refusal, RefusalCause, Region, Stats, Stream, UNIT,
    format_bytes, round_up,
};

/// What a chunk may keep beyond its request before it is split all the same.
const MAX_SLACK: u64 = 128 * MIB;
/// The first region of a pool that grows.
const FIRST_REGION: u64 = 2 * MIB;
/// What is left of a region's size after each refusal.
const BACK_OFF: f32 = 0.9;
const NONE: u32 = u32::MAX;

/// The settings of a [`Bfc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BfcOptions {
    /// What the pool may never exceed, in bytes.
    pub limit: u64,
    /// Whether the pool grows in doubling regions from 2 MiB; otherwise its first region is the whole limit.
    pub growth: bool,
    /// Whether empty regions go back to the driver when the limit leaves too little.
    pub gc: bool,
    /// The slack that forces a split, as a fraction of the limit; 0 for 128 MiB.
    pub fragmentation_fraction: f64,
    /// Whether regions that happen to be adjacent join. XLA does so for host pools only.
    pub coalesce: bool,
}

impl BfcOptions {
    /// One region of `limit` bytes, taken at the first allocation.
    pub fn preallocate(limit: u64) -> BfcOptions {
        BfcOptions { limit, growth: false, gc: false, fragmentation_fraction: 0.0, coalesce: false }
    }

    /// Regions of doubling size up to `limit` bytes in all.
    pub fn ondemand(limit: u64, gc: bool) -> BfcOptions {
        BfcOptions { gc, growth: true, ..BfcOptions::preallocate(limit) }
    }
}

#[derive(Clone, Copy)]
struct Piece {
    address: u64,
    bytes: u64,
    prev: u32,
    next: u32,
    region: u32,
    state: PieceState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceState {
    Free,
    Used,
    /// The slot holds no chunk.
    Vacant,
}

#[derive(Default)]
struct Pieces {
    slots: Vec<Piece>,
    /// What the owner of each used chunk asked for: only maps read it, so it lies apart from what is looked up.
    requested: Vec<u64>,
    vacant: Vec<u32>,
}

impl Pieces {
    fn add(&mut self, piece: Piece) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            self.slots[slot as usize] = piece;
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 chunks");
        self.slots.push(piece);
        self.requested.push(0);
        slot
    }

    fn vacate(&mut self, slot: u32) {
        self.slots[slot as usize].state = PieceState::Vacant;
        self.vacant.push(slot);
    }

    fn at(&self, slot: u32) -> &Piece {
        &self.slots[slot as usize]
    }

    fn at_mut(&mut self, slot: u32) -> &mut Piece {
        &mut self.slots[slot as usize]
    }
}

/// A run of addresses that came from the driver in one call, or in several where regions join.
struct Run {
    base: u64,
    bytes: u64,
    ordinal: u64,
    live: u32,
    first: u32,
    regions: Vec<Region>,
}

/// XLA's best-fit allocator with coalescing over the regions of a driver.
pub struct Bfc {
    options: BfcOptions,
    next_region_bytes: u64,
    pieces: Pieces,
    free: FreeList,
    runs: Vec<Option<Run>>,
    regions_made: u64,
    stats: Stats,
}

impl Bfc {
    /// An empty pool: nothing is asked of a driver before the first allocation.
    pub fn new(options: BfcOptions) -> Bfc {
        let first = if options.growth { FIRST_REGION.min(options.limit) } else { options.limit };
        Bfc {
            options,
            next_region_bytes: round_up(first, UNIT).max(UNIT),
            pieces: Pieces::default(),
            free: FreeList::new(),
            runs: Vec::new(),
            regions_made: 0,
            stats: Stats { bytes_limit: options.limit, ..Stats::default() },
        }
    }

    /// The settings.
    pub fn options(&self) -> &BfcOptions {
        &self.options
    }

    /// What a request holds before slack: rounded up to 256 bytes.
    pub fn rounded(bytes: u64) -> u64 {
        round_up(bytes, UNIT)
    }

    fn take(&mut self, requested: u64, rounded: u64) -> Option<Block> {
        let slot = self.free.take_best_fit(rounded)?;
        let bytes = self.pieces.at(slot).bytes;
        if bytes / 2 >= rounded || bytes - rounded >= self.max_slack() {
            self.split(slot, rounded);
        }
        let piece = self.pieces.at_mut(slot);
        piece.state = PieceState::Used;
        let (address, granted, run) = (piece.address, piece.bytes, piece.region);
        self.pieces.requested[slot as usize] = requested;
        self.run_mut(run).live += 1;
        self.stats.count_alloc(requested, granted);
        Some(Block::new(address, requested, granted, u64::from(slot)))
    }

    fn max_slack(&self) -> u64 {
        match self.options.fragmentation_fraction {
            fraction if fraction > 0.0 => (fraction * self.options.limit as f64) as u64,
            _ => MAX_SLACK,
        }
    }

    /// Cuts a chunk that is in no list to `bytes`; the rest becomes a free chunk after it.
    fn split(&mut self, slot: u32, bytes: u64) {
        let whole = *self.pieces.at(slot);
        let rest = Piece {
            address: whole.address + bytes,
            bytes: whole.bytes - bytes,
            prev: slot,
            next: whole.next,
            region: whole.region,
            state: PieceState::Free,
        };
        let (address, rest_bytes) = (rest.address, rest.bytes);
        let rest = self.pieces.add(rest);
        if whole.next != NONE {
            self.pieces.at_mut(whole.next).prev = rest;
        }
        let piece = self.pieces.at_mut(slot);
        piece.bytes = bytes;
        piece.next = rest;
        self.free.insert(rest_bytes, address, rest);
    }

    /// Joins a chunk that is in no list with its free neighbours and lists the whole.
    fn list(&mut self, slot: u32) {
        let mut slot = slot;
        let next = self.pieces.at(slot).next;
        if self.unlist_if_free(next) {
            self.join(slot, next);
        }
        let prev = self.pieces.at(slot).prev;
        if self.unlist_if_free(prev) {
            self.join(prev, slot);
            slot = prev;
        }
        let piece = self.pieces.at_mut(slot);
        piece.state = PieceState::Free;
        self.free.insert(piece.bytes, piece.address, slot);
    }

    fn unlist_if_free(&mut self, slot: u32) -> bool {
        if slot == NONE || self.pieces.at(slot).state != PieceState::Free {
            return false;
        }
        let piece = *self.pieces.at(slot);
        self.free.remove(piece.bytes, piece.address, slot);
        true
    }

    /// `second` goes up in `first`, its neighbour below.
    fn join(&mut self, first: u32, second: u32) {
        let gone = *self.pieces.at(second);
        let piece = self.pieces.at_mut(first);
        piece.bytes += gone.bytes;
        piece.next = gone.next;
        if gone.next != NONE {
            self.pieces.at_mut(gone.next).prev = first;
        }
        self.pieces.vacate(second);
    }

    /// Grows the pool by a region that holds `rounded` bytes.
    fn extend(&mut self, rounded: u64, driver: &mut dyn Driver) -> Result<(), Cause> {
        let available = (self.options.limit - self.stats.pool_bytes) / UNIT * UNIT;
        if rounded > available {
            return Err(Cause::Limit);
        }
        let mut raised = false;
        while rounded > self.next_region_bytes {
            self.next_region_bytes = self.next_region_bytes.saturating_mul(2);
            raised = true;
        }
        let region = self.obtain(self.next_region_bytes.min(available), rounded, driver)?;
        if !raised {
            self.next_region_bytes = self.next_region_bytes.saturating_mul(2);
        }
        self.add_region(region);
        Ok(())
    }

    /// Asks for `bytes`, and after each refusal for nine tenths of it, as long as that holds `least`.
    fn obtain(&mut self, bytes: u64, least: u64, driver: &mut dyn Driver) -> Result<Region, Cause> {
        let mut bytes = bytes;
        loop {
            let refusal = match driver.obtain(bytes) {
                Ok(region) => return Ok(region),
                Err(refusal) => refusal,
            };
            self.stats.driver_refusals += 1;
            if refusal.cause == RefusalCause::Unsupported {
                return Err(Cause::Driver(refusal));
            }
            bytes = backed_off(bytes);
            if bytes < least {
                return Err(Cause::Driver(Refusal { asked: least, ..refusal }));
            }
        }
    }

    fn add_region(&mut self, region: Region) {
        let (base, bytes) = (region.base(), region.bytes());
        let ordinal = self.regions_made;
        self.regions_made += 1;
        self.stats.count_grow(bytes);
        let (run, prev) = match self.run_ending_at(base) {
            Some(run) => {
                let last = self.last_piece(run);
                let extended = self.run_mut(run);
                extended.bytes += bytes;
                extended.regions.push(region);
                (run, last)
            }
            None => {
                let run = Run { base, bytes, ordinal, live: 0, first: NONE, regions: vec![region] };
                (self.add_run(run), NONE)
            }
        };
        let slot = self.pieces.add(Piece {
            address: base,
            bytes,
            prev,
            next: NONE,
            region: run,
            // In no list yet, so not free for a neighbour that looks.
            state: PieceState::Used,
        });
        if prev == NONE {
            self.run_mut(run).first = slot;
        } else {
            self.pieces.at_mut(prev).next = slot;
        }
        self.list(slot);
    }

    fn add_run(&mut self, run: Run) -> u32 {
        let vacant = self.runs.iter().position(Option::is_none);
        let index = vacant.unwrap_or_else(|| {
            self.runs.push(None);
            self.runs.len() - 1
        });
        self.runs[index] = Some(run);
        index as u32
    }

    fn run_ending_at(&self, base: u64) -> Option<u32> {
        if !self.options.coalesce {
            return None;
        }
        let ends_here = |run: &Run| run.base + run.bytes == base;
        let found = self.runs.iter().position(|run| run.as_ref().is_some_and(ends_here));
        found.map(|index| index as u32)
    }

    fn last_piece(&self, run: u32) -> u32 {
        let mut slot = self.run(run).first;
        while self.pieces.at(slot).next != NONE {
            slot = self.pieces.at(slot).next;
        }
        slot
    }

    fn run(&self, index: u32) -> &Run {
        self.runs[index as usize].as_ref().expect("a chunk lies in a region that is held")
    }

    fn run_mut(&mut self, index: u32) -> &mut Run {
        self.runs[index as usize].as_mut().expect("a chunk lies in a region that is held")
    }

    /// Returns all empty regions, if with them the limit leaves enough; says whether it did.
    fn collect(&mut self, rounded: u64, driver: &mut dyn Driver) -> bool {
        if !self.options.gc {
            return false;
        }
        let empty: u64 =
            self.runs.iter().flatten().filter(|run| run.live == 0).map(|r| r.bytes).sum();
        let available = self.options.limit - self.stats.pool_bytes + empty;
        if empty == 0 || rounded > available {
            return false;
        }
        self.release_empty(driver);
        true
    }

    /// Returns every empty region to the driver, lowest address first; gives bytes and regions.
    fn release_empty(&mut self, driver: &mut dyn Driver) -> (u64, u64) {
        let mut empty: Vec<(u64, usize)> = self
            .runs
            .iter()
            .enumerate()
            .filter_map(|(index, run)| run.as_ref().map(|run| (index, run)))
            .filter(|(_, run)| run.live == 0)
            .map(|(index, run)| (run.base, index))
            .collect();
        empty.sort_unstable();
        let (mut bytes, mut regions) = (0, 0);
        for (_, index) in empty {
            let run = self.runs[index].take().expect("an empty region is held");
            let whole = self.unlist_if_free(run.first);
            assert!(whole, "an empty region is one free chunk");
            self.pieces.vacate(run.first);
            for region in run.regions {
                bytes += region.bytes();
                regions += 1;
                self.stats.count_shrink(region.bytes());
                driver.release(region);
            }
        }
        (bytes, regions)
    }

    fn pieces_of(&self, run: &Run) -> impl Iterator<Item = (u32, &Piece)> {
        let mut slot = run.first;
        std::iter::from_fn(move || {
            if slot == NONE {
                return None;
            }
            let here = slot;
            slot = self.pieces.at(here).next;
            Some((here, self.pieces.at(here)))
        })
    }

    fn runs_by_address(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().flatten().collect();
        runs.sort_unstable_by_key(|run| run.base);
        runs
    }

    fn kept(&self, run: &Run) -> Kept {
        let used = || self.pieces_of(run).filter(|(_, piece)| piece.state == PieceState::Used);
        Kept {
            base: run.base,
            bytes: run.bytes,
            bytes_in_use: used().map(|(_, piece)| piece.bytes).sum(),
            pinned_by: used().map(|(_, piece)| piece.address).collect(),
            blocks: Vec::new(),
        }
    }
}

/// Nine tenths of `bytes`, taken in 32-bit floats as XLA does, rounded up to 256. Where that would not go down, the
/// next multiple of 256 below (XLA 2.21 spins there for ever; newer code steps).
fn backed_off(bytes: u64) -> u64 {
    let smaller = round_up((bytes as f32 * BACK_OFF) as u64, UNIT);
    if smaller < bytes { smaller } else { bytes.saturating_sub(UNIT) }
}

impl MemoryResource for Bfc {
    fn allocate(
        &mut self,
        bytes: u64,
        _stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        if bytes == 0 {
            return Ok(Block::empty());
        }
        let rounded = Bfc::rounded(bytes);
        let cause = 'fail: {
            if rounded < bytes {
                break 'fail Cause::Limit;
            }
            if let Some(block) = self.take(bytes, rounded) {
                return Ok(block);
            }
            let cause = match self.extend(rounded, driver) {
                Ok(()) => return Ok(self.take(bytes, rounded).expect("a new region holds it")),
                Err(cause) => cause,
            };
            if cause != Cause::Limit || !self.collect(rounded, driver) {
                break 'fail cause;
            }
            match self.extend(rounded, driver) {
                Ok(()) => return Ok(self.take(bytes, rounded).expect("a new region holds it")),
                Err(cause) => cause,
            }
        };
        Err(AllocError::new(bytes, &self.stats(), driver, cause))
    }

    fn deallocate(&mut self, block: Block, _stream: Stream, _driver: &mut dyn Driver) {
        if block.is_empty() {
            return;
        }
        let slot = block.handle() as u32;
        let piece = *self.pieces.at(slot);
        assert!(
            piece.state == PieceState::Used && piece.address == block.address(),
            "{block:?} is not a live block of this pool"
        );
        self.stats.count_free(block.requested(), piece.bytes);
        self.run_mut(piece.region).live -= 1;
        self.list(slot);
    }

    fn synchronize(&mut self, _driver: &mut dyn Driver) {
        // XLA frees a buffer once its stream is done with it: no order of streams is kept here.
    }

    fn trim(&mut self, driver: &mut dyn Driver) -> Trimmed {
        let (released_bytes, released_regions) = self.release_empty(driver);
        let kept = self.runs_by_address().into_iter().map(|run| self.kept(run)).collect();
        Trimmed { released_bytes, released_regions, kept }
    }

    fn stats(&self) -> Stats {
        Stats { largest_free_block_bytes: self.free.largest(), ..self.stats }
    }

    fn reset_peak(&mut self) {
        self.stats.reset_peak();
    }

    fn upstream(&self) -> Option<&dyn MemoryResource> {
        None
    }

    fn describe(&self) -> String {
        let limit = format_bytes(self.options.limit);
        match (self.options.growth, self.options.gc) {
            (false, _) => format!("bfc: one region of {limit}, taken at the first allocation"),
            (true, false) => format!("bfc: regions from 2 MiB, doubling, up to {limit}"),
            (true, true) => {
                format!(
                    "bfc: regions from 2 MiB, doubling, up to {limit}; empty ones are collected"
                )
            }
        }
    }

    fn regions(&self) -> Vec<RegionFigures> {
        let figures = |run: &Run| {
            let (mut in_use, mut largest) = (0, 0);
            for (_, piece) in self.pieces_of(run) {
                match piece.state {
                    PieceState::Used => in_use += piece.bytes,
                    _ => largest = piece.bytes.max(largest),
                }
            }
            RegionFigures {
                base: run.base,
                bytes: run.bytes,
                ordinal: run.ordinal,
                bytes_in_use: in_use,
                live_blocks: u64::from(run.live),
                largest_free: largest,
            }
        };
        self.runs_by_address().into_iter().map(figures).collect()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let chunk = |(slot, piece): (u32, &Piece)| Chunk {
            address: piece.address,
            bytes: piece.bytes,
            requested: match piece.state {
                PieceState::Used => self.pieces.requested[slot as usize],
                _ => 0,
            },
            handle: u64::from(slot),
            state: match piece.state {
                PieceState::Used => ChunkState::Used,
                _ => ChunkState::Free,
            },
        };
        self.runs_by_address()
            .into_iter()
            .flat_map(|run| self.pieces_of(run).map(chunk).collect::<Vec<_>>())
            .collect()
    }

    fn check(&self) -> Result<(), Broken> {
        let stats = self.stats();
        stats.check()?;
        let (mut in_use, mut pool, mut largest) = (0, 0, 0);
        for run in self.runs.iter().flatten() {
            pool += run.bytes;
            let (mut at, mut live, mut was_free) = (run.base, 0, false);
            for (_, piece) in self.pieces_of(run) {
                if piece.address != at || piece.bytes == 0 || piece.bytes % UNIT != 0 {
                    return Err(Broken(format!("a chunk at {:#x} does not tile", piece.address)));
                }
                at += piece.bytes;
                match piece.state {
                    PieceState::Used => {
                        live += 1;
                        in_use += piece.bytes;
                    }
                    _ if was_free => return Err(Broken("two free chunks side by side".into())),
                    _ => largest = piece.bytes.max(largest),
                }
                was_free = piece.state == PieceState::Free;
            }
            if at != run.base + run.bytes || live != run.live {
                return Err(Broken(format!("the region at {:#x} is not tiled", run.base)));
            }
        }
        let counted = (in_use, pool, largest);
        let told = (stats.bytes_in_use, stats.pool_bytes, stats.largest_free_block_bytes);
        if counted != told {
            return Err(Broken(format!("in use, pool, largest free: {counted:?} but {told:?}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backing_off_is_taken_in_32_bit_floats() {
        let mut bytes = 805_306_368;
        for expected in [724_775_680, 652_298_240, 587_068_416, 528_361_728] {
            bytes = backed_off(bytes);
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn backing_off_always_goes_down() {
        for bytes in [256, 512, 768, 1024, 2048, 2304] {
            assert!(backed_off(bytes) < bytes, "{bytes}");
        }
        assert_eq!(backed_off(0), 0);
    }
}
