//! PyTorch's caching allocator, rule for rule (`c10/cuda/CUDACachingAllocator`).
//!
//! Requests are rounded to 512 bytes. Up to 1 MiB they come from segments of 2 MiB, below 10 MiB from segments of 20 MiB,
//! above from segments of their own, rounded to 2 MiB. Among the free blocks of the stream the smallest fitting one is
//! taken, the lowest address among equals. The rest is split off from 512 bytes up in the small pool, above 1 MiB in the
//! large one. A segment goes back to the driver only whole, when the driver refuses or on a trim.

mod counters;
mod options;
mod segments;

pub use options::{CachingOptions, Divisions};

use crate::names::Named;
use crate::resource::{AllocError, Cause, Chunk, ChunkState, Kept, RegionFigures, Trimmed};
use crate::{
    Block, Broken, Driver, MIB, MemoryResource, Region, Stats, Stream, TorchStats, format_bytes,
    round_up,
};
use std::collections::BTreeSet;

const MIN_BLOCK: u64 = 512;
const SMALL: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
const OWN_SEGMENT: u64 = 10 * MIB;
const OWN_ROUNDING: u64 = 2 * MIB;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PieceState {
    Free,
    Used,
    /// Addresses without memory, in an expandable segment.
    Unmapped,
    /// The slot holds no block.
    Vacant,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    address: u64,
    bytes: u64,
    requested: u64,
    segment: u32,
    prev: u32,
    next: u32,
    state: PieceState,
    /// The count of searches in the pool when it became free: its age is what came since.
    free_since: u64,
}

struct Segment {
    base: u64,
    bytes: u64,
    stream: Stream,
    pool: usize,
    ordinal: u64,
    first: u32,
    /// `None`: an expandable segment, which is addresses with memory mapped here and there.
    region: Option<Region>,
}

/// Free blocks in the order of the search: by stream, size, address.
#[derive(Default)]
struct Pool {
    free: BTreeSet<Key>,
    unmapped: BTreeSet<Key>,
    searches: u64,
}

type Key = (Stream, u64, u64, u32);

const SMALL_POOL: usize = 0;
const LARGE_POOL: usize = 1;

/// PyTorch's caching allocator over the regions of a driver.
pub struct Caching {
    options: CachingOptions,
    pieces: Vec<Piece>,
    vacant: Vec<u32>,
    segments: Named<u32, Segment>,
    next_segment: u32,
    pools: [Pool; 2],
    streams: Vec<Stream>,
    torch: TorchStats,
    stats: Stats,
}

/// A segment as a snapshot shows it, to begin from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentImage {
    /// Where it begins.
    pub base: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its stream.
    pub stream: Stream,
    /// Whether it serves requests of at most 1 MiB.
    pub small: bool,
    /// Address, size and requested size of each block that is out, by address.
    pub used: Vec<(u64, u64, u64)>,
}

impl Caching {
    /// An empty cache.
    pub fn new(options: CachingOptions) -> Caching {
        Caching {
            options,
            pieces: Vec::new(),
            vacant: Vec::new(),
            segments: Named::default(),
            next_segment: 0,
            pools: Default::default(),
            streams: Vec::new(),
            torch: TorchStats::by_pool(options.max_split_bytes()),
            stats: Stats { bytes_limit: options.limit, ..Stats::default() },
        }
    }

    /// A cache in the state that some segments show, with the blocks that are out.
    pub fn restore(options: CachingOptions, images: &[SegmentImage]) -> (Caching, Vec<Block>) {
        let mut cache = Caching::new(options);
        let mut blocks = Vec::new();
        for image in images {
            let region = Region::new(image.base, image.bytes, 0);
            let pool = if image.small { SMALL_POOL } else { LARGE_POOL };
            let mut rest = cache.add_segment(region, image.stream, pool);
            for (address, bytes, requested) in &image.used {
                let before = address - cache.piece(rest).address;
                if before > 0 {
                    let free = rest;
                    rest = cache.cut(free, before);
                    cache.list(free);
                }
                let used = rest;
                if cache.piece(used).bytes > *bytes {
                    rest = cache.cut(used, *bytes);
                }
                blocks.push(cache.hand_out(used, *requested));
            }
            if cache.piece(rest).state != PieceState::Used {
                cache.list(rest);
            }
        }
        cache.count_inactive();
        (cache, blocks)
    }

    /// The settings.
    pub fn options(&self) -> &CachingOptions {
        &self.options
    }

    /// How often a request was tried again after the cache had been given back (PyTorch's `num_alloc_retries`).
    pub fn retries(&self) -> u64 {
        self.torch.num_alloc_retries
    }

    fn piece(&self, slot: u32) -> &Piece {
        &self.pieces[slot as usize]
    }

    fn piece_mut(&mut self, slot: u32) -> &mut Piece {
        &mut self.pieces[slot as usize]
    }

    fn segment_of(&self, slot: u32) -> &Segment {
        &self.segments[&self.piece(slot).segment]
    }

    fn key(&self, slot: u32) -> Key {
        let piece = self.piece(slot);
        (self.segment_of(slot).stream, piece.bytes, piece.address, slot)
    }

    fn add_piece(&mut self, piece: Piece) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            self.pieces[slot as usize] = piece;
            return slot;
        }
        self.pieces.push(piece);
        u32::try_from(self.pieces.len() - 1).expect("fewer than 2^32 blocks")
    }

    fn vacate(&mut self, slot: u32) {
        self.piece_mut(slot).state = PieceState::Vacant;
        self.vacant.push(slot);
    }

    /// Cuts a block that is in no list to `bytes`; gives the rest, in no list either.
    fn cut(&mut self, slot: u32, bytes: u64) -> u32 {
        let whole = *self.piece(slot);
        let rest = Piece {
            address: whole.address + bytes,
            bytes: whole.bytes - bytes,
            requested: 0,
            prev: slot,
            next: whole.next,
            ..whole
        };
        let rest = self.add_piece(rest);
        if whole.next != NONE {
            self.piece_mut(whole.next).prev = rest;
        }
        let piece = self.piece_mut(slot);
        (piece.bytes, piece.next) = (bytes, rest);
        rest
    }

    /// Puts a block that is in no list among the free ones of its pool.
    fn list(&mut self, slot: u32) {
        let pool = self.segment_of(slot).pool;
        let searches = self.pools[pool].searches;
        let piece = self.piece_mut(slot);
        (piece.state, piece.requested, piece.free_since) = (PieceState::Free, 0, searches);
        let key = self.key(slot);
        self.pools[pool].free.insert(key);
    }

    fn unlist(&mut self, slot: u32) {
        let pool = self.segment_of(slot).pool;
        let key = self.key(slot);
        let was_there = match self.piece(slot).state {
            PieceState::Unmapped => self.pools[pool].unmapped.remove(&key),
            _ => self.pools[pool].free.remove(&key),
        };
        assert!(was_there, "a free block is in the list of its pool");
    }

    /// Joins a block that is in no list with its neighbours of the same state, which leave theirs.
    fn join_neighbours(&mut self, slot: u32) -> u32 {
        let state = self.piece(slot).state;
        let mut slot = slot;
        let prev = self.piece(slot).prev;
        if prev != NONE && self.piece(prev).state == state {
            self.unlist(prev);
            self.join(prev, slot);
            slot = prev;
        }
        let next = self.piece(slot).next;
        if next != NONE && self.piece(next).state == state {
            self.unlist(next);
            self.join(slot, next);
        }
        slot
    }

    fn join(&mut self, first: u32, second: u32) {
        let gone = *self.piece(second);
        let piece = self.piece_mut(first);
        piece.bytes += gone.bytes;
        piece.next = gone.next;
        if gone.next != NONE {
            self.piece_mut(gone.next).prev = first;
        }
        self.vacate(second);
    }

    fn hand_out(&mut self, slot: u32, requested: u64) -> Block {
        let piece = self.piece_mut(slot);
        (piece.state, piece.requested) = (PieceState::Used, requested);
        let (address, granted) = (piece.address, piece.bytes);
        self.stats.count_alloc(requested, granted);
        self.count_out(slot);
        Block::new(address, requested, granted, u64::from(slot))
    }

    /// The best of the cached blocks, out of its list.
    fn find(&mut self, rounded: u64, stream: Stream, pool: usize) -> Option<u32> {
        if self.options.collects() {
            self.pools[pool].searches += 1;
        }
        let best = self.best_fit(rounded, stream, pool)?;
        let bytes = self.piece(best).bytes;
        let max_split = self.options.max_split;
        if rounded < max_split && bytes >= max_split {
            return None;
        }
        if rounded >= max_split && bytes >= rounded.saturating_add(LARGE_SEGMENT) {
            return None;
        }
        self.unlist(best);
        Some(best)
    }

    fn best_fit(&self, rounded: u64, stream: Stream, pool: usize) -> Option<u32> {
        let from = (stream, rounded, 0, 0)..;
        let mut fits =
            self.pools[pool].free.range(from).take_while(|key| key.0 == stream).map(|key| key.3);
        let mut best = fits.next()?;
        if self.options.expandable_segments {
            // A block that can grow counts with what it can grow by.
            for next in fits {
                if self.growable(next) >= self.growable(best) {
                    break;
                }
                best = next;
            }
        }
        Some(best)
    }

    fn growable(&self, slot: u32) -> u64 {
        let piece = self.piece(slot);
        let beyond = match piece.next {
            NONE => 0,
            next if self.piece(next).state == PieceState::Unmapped => self.piece(next).bytes,
            _ => 0,
        };
        piece.bytes + beyond
    }

    fn splits(&self, slot: u32, rounded: u64) -> bool {
        let rest = self.piece(slot).bytes - rounded;
        if self.segment_of(slot).pool == SMALL_POOL || self.options.expandable_segments {
            return rest >= MIN_BLOCK;
        }
        rounded < self.options.max_split && rest > SMALL
    }

    fn place(&mut self, slot: u32, rounded: u64, requested: u64) -> Block {
        let was_split = self.is_split(slot);
        if self.splits(slot, rounded) {
            let rest = self.cut(slot, rounded);
            self.list(rest);
            self.count_cut(rest, rounded, was_split);
        } else if was_split {
            self.count_filled(slot);
        }
        self.hand_out(slot, requested)
    }

    fn segments_by_address(&self) -> Vec<&Segment> {
        let mut segments: Vec<&Segment> = self.segments.values().collect();
        segments.sort_unstable_by_key(|segment| segment.base);
        segments
    }

    /// The blocks of a segment by address, addresses without memory left out.
    fn pieces_of(&self, segment: &Segment) -> impl Iterator<Item = (u32, &Piece)> {
        let mut slot = segment.first;
        let all = std::iter::from_fn(move || {
            if slot == NONE {
                return None;
            }
            let here = slot;
            slot = self.piece(here).next;
            Some((here, self.piece(here)))
        });
        all.filter(|(_, piece)| piece.state != PieceState::Unmapped)
    }

    fn kept(&self, segment: &Segment) -> Kept {
        let used = || self.pieces_of(segment).filter(|(_, piece)| piece.state == PieceState::Used);
        Kept {
            base: segment.base,
            bytes: self.pieces_of(segment).map(|(_, piece)| piece.bytes).sum(),
            bytes_in_use: used().map(|(_, piece)| piece.bytes).sum(),
            pinned_by: used().map(|(_, piece)| piece.address).collect(),
            blocks: Vec::new(),
        }
    }

    fn largest_free(&self) -> u64 {
        let largest = |pool: &Pool, stream: Stream| {
            let of_stream = (stream, 0, 0, 0)..=(stream, u64::MAX, u64::MAX, NONE);
            pool.free.range(of_stream).next_back().map_or(0, |key| key.1)
        };
        let pools = self.pools.iter();
        let all = pools.flat_map(|pool| self.streams.iter().map(move |s| largest(pool, *s)));
        all.max().unwrap_or(0)
    }
}

/// What a new segment holds that is made for a request of `rounded` bytes.
fn segment_bytes(rounded: u64) -> u64 {
    match rounded {
        _ if rounded <= SMALL => SMALL_SEGMENT,
        _ if rounded < OWN_SEGMENT => LARGE_SEGMENT,
        _ => round_up(rounded, OWN_ROUNDING),
    }
}

fn pool_of(rounded: u64) -> usize {
    if rounded <= SMALL { SMALL_POOL } else { LARGE_POOL }
}

impl MemoryResource for Caching {
    fn allocate(
        &mut self,
        bytes: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        if bytes == 0 {
            return Ok(Block::empty());
        }
        let rounded = self.options.rounded(bytes);
        if rounded < bytes || segment_bytes(rounded) < rounded || bytes > driver.figures().total {
            return Err(AllocError::new(bytes, &self.stats(), driver, Cause::Limit));
        }
        if let Some(slot) = self.find(rounded, stream, pool_of(rounded)) {
            return Ok(self.place(slot, rounded, bytes));
        }
        match self.grow(rounded, stream, driver) {
            Ok(slot) => Ok(self.place(slot, rounded, bytes)),
            Err(cause) => Err(AllocError::new(bytes, &self.stats(), driver, cause)),
        }
    }

    fn deallocate(&mut self, block: Block, _stream: Stream, _driver: &mut dyn Driver) {
        if block.is_empty() {
            return;
        }
        let slot = block.handle() as u32;
        let piece = *self.piece(slot);
        assert!(
            piece.state == PieceState::Used && piece.address == block.address(),
            "{block:?} is not a live block of this cache"
        );
        self.stats.count_free(piece.requested, piece.bytes);
        let joined = self.free_beside(slot);
        self.piece_mut(slot).state = PieceState::Free;
        let whole = self.join_neighbours(slot);
        self.list(whole);
        self.count_back(&piece, whole, joined);
    }

    fn synchronize(&mut self, _driver: &mut dyn Driver) {
        // A block is reused by its own stream only, and stays cached.
    }

    fn trim(&mut self, driver: &mut dyn Driver) -> Trimmed {
        let before = self.stats;
        self.release_cached(driver);
        let kept = self.segments_by_address().into_iter().map(|segment| self.kept(segment));
        Trimmed {
            released_bytes: before.pool_bytes - self.stats.pool_bytes,
            released_regions: self.stats.driver_frees - before.driver_frees,
            kept: kept.filter(|kept| kept.bytes > 0).collect(),
        }
    }

    fn stats(&self) -> Stats {
        Stats { largest_free_block_bytes: self.largest_free(), ..self.stats }
    }

    fn reset_peak(&mut self) {
        self.stats.reset_peak();
        self.torch.reset_peak();
    }

    fn torch_stats(&self) -> Option<&TorchStats> {
        Some(&self.torch)
    }

    fn upstream(&self) -> Option<&dyn MemoryResource> {
        None
    }

    fn describe(&self) -> String {
        let limit = format_bytes(self.options.limit);
        let kind =
            if self.options.expandable_segments { "expandable segments" } else { "segments" };
        format!("caching: {kind} of 2 and 20 MiB, cached until the driver refuses, up to {limit}")
    }

    fn regions(&self) -> Vec<RegionFigures> {
        let figures = |segment: &Segment| {
            let mut figures = RegionFigures {
                base: segment.base,
                bytes: 0,
                ordinal: segment.ordinal,
                bytes_in_use: 0,
                live_blocks: 0,
                largest_free: 0,
            };
            for (_, piece) in self.pieces_of(segment) {
                figures.bytes += piece.bytes;
                if piece.state == PieceState::Used {
                    figures.bytes_in_use += piece.bytes;
                    figures.live_blocks += 1;
                } else {
                    figures.largest_free = figures.largest_free.max(piece.bytes);
                }
            }
            figures
        };
        let all = self.segments_by_address().into_iter().map(figures);
        all.filter(|region| region.bytes > 0).collect()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let chunk = |(slot, piece): (u32, &Piece)| Chunk {
            address: piece.address,
            bytes: piece.bytes,
            requested: piece.requested,
            handle: u64::from(slot),
            state: match piece.state {
                PieceState::Used => ChunkState::Used,
                _ => ChunkState::Free,
            },
        };
        let segments = self.segments_by_address().into_iter();
        segments
            .flat_map(|segment| self.pieces_of(segment).map(chunk).collect::<Vec<_>>())
            .collect()
    }

    fn check(&self) -> Result<(), Broken> {
        let stats = self.stats();
        stats.check()?;
        let (mut in_use, mut pool) = (0, 0);
        for segment in self.segments.values() {
            let (mut at, mut before, mut slot) = (segment.base, None, segment.first);
            while slot != NONE {
                let piece = self.piece(slot);
                if piece.address != at {
                    return Err(Broken(format!("a block at {:#x} does not tile", piece.address)));
                }
                if before == Some(piece.state) && piece.state != PieceState::Used {
                    return Err(Broken(format!("two {:?} blocks side by side", piece.state)));
                }
                let listed = match piece.state {
                    PieceState::Free => self.pools[segment.pool].free.contains(&self.key(slot)),
                    PieceState::Unmapped => {
                        self.pools[segment.pool].unmapped.contains(&self.key(slot))
                    }
                    _ => true,
                };
                if !listed {
                    return Err(Broken(format!("{piece:?} is in no list")));
                }
                in_use += if piece.state == PieceState::Used { piece.bytes } else { 0 };
                pool += if piece.state == PieceState::Unmapped { 0 } else { piece.bytes };
                at += piece.bytes;
                (before, slot) = (Some(piece.state), piece.next);
            }
            if at != segment.base + segment.bytes {
                return Err(Broken(format!("the segment at {:#x} is not tiled", segment.base)));
            }
        }
        if (in_use, pool) != (stats.bytes_in_use, stats.pool_bytes) {
            return Err(Broken(format!("in use {in_use}, pool {pool} but {stats:?}")));
        }
        Ok(())
    }
}
