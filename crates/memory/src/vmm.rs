//! Addresses and memory apart: a wide range of addresses is reserved once, and physical granules are put behind it where
//! blocks lie. A pool that grows so has no regions that cannot join: what is free anywhere can be moved, granule by
//! granule, behind any address.
//!
//! Two modes are this allocator under different settings. `vmm` maps on demand and keeps what was freed. `cuda_async` is a
//! model of the driver's stream-ordered pool, which works on the same calls: a freed block is at once free for its own
//! stream, for the others after a synchronisation, and above a threshold memory goes back at the synchronisation.
//!
//! The smallest fitting free block is taken, the lowest address among equals, and split exactly: no slack. Where none
//! fits, the run of free and unmapped addresses that needs the fewest new granules is mapped; under a limit or a refusal,
//! whole free granules elsewhere are unmapped first.
//!
//! Spans lie in slots and know their neighbours, so that neither a block that comes back nor a split looks anything up
//! by address; free ones are listed as in BFC.

use crate::freelist::FreeList;
use crate::resource::{AllocError, Cause, Chunk, ChunkState, Kept, RegionFigures, Trimmed};
use crate::{
    Block, Broken, Driver, MIB, MemoryResource, Refusal, RefusalCause, Stats, Stream, UNIT,
    format_bytes, round_up,
};
use std::collections::BTreeMap;

/// The settings of a [`Vmm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmmOptions {
    /// What the pool may never hold more of, in bytes.
    pub limit: u64,
    /// What is mapped and unmapped at once, in bytes; a multiple of the driver's granule is made of it.
    pub granule: u64,
    /// Free bytes that stay mapped when memory goes back.
    pub keep: u64,
    /// Whether frees are ordered by stream, and memory goes back at a synchronisation instead of at each free.
    pub stream_ordered: bool,
}

impl VmmOptions {
    /// The `vmm` mode: granules of 2 MiB, all of which stay mapped.
    pub fn vmm(limit: u64) -> VmmOptions {
        VmmOptions { limit, granule: 2 * MIB, keep: u64::MAX, stream_ordered: false }
    }

    /// The `cuda_async` mode: granules of 32 MiB, as the driver's pool shows, kept up to `release_threshold`.
    pub fn cuda_async(limit: u64, release_threshold: u64) -> VmmOptions {
        VmmOptions { limit, granule: 32 * MIB, keep: release_threshold, stream_ordered: true }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Used,
    /// Free for all, or until the next synchronisation for one stream only.
    Free(Option<Stream>),
    Unmapped,
}

const FREE: State = State::Free(None);

/// The slot of no span.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Span {
    at: u64,
    bytes: u64,
    requested: u64,
    /// Where its range of addresses begins.
    range: u64,
    /// Its neighbours in the range, by slot.
    prev: u32,
    next: u32,
    state: State,
}

impl Span {
    fn end(&self) -> u64 {
        self.at + self.bytes
    }
}

/// A range of reserved addresses.
#[derive(Clone, Copy, Debug)]
struct Range {
    bytes: u64,
    first: u32,
}

/// A pool over reserved addresses.
pub struct Vmm {
    options: VmmOptions,
    /// Everything reserved; spans tile their ranges, and vacant slots are in `vacant`.
    spans: Vec<Span>,
    vacant: Vec<u32>,
    ranges: BTreeMap<u64, Range>,
    /// What is free for all.
    free: FreeList,
    /// What is free for one stream until the next synchronisation.
    tagged: Vec<(Stream, FreeList)>,
    /// Addresses without memory, by address.
    unmapped: BTreeMap<u64, u32>,
    stats: Stats,
}

impl Vmm {
    /// An empty pool: nothing is reserved before the first allocation.
    pub fn new(options: VmmOptions) -> Vmm {
        Vmm {
            options,
            spans: Vec::new(),
            vacant: Vec::new(),
            ranges: BTreeMap::new(),
            free: FreeList::new(),
            tagged: Vec::new(),
            unmapped: BTreeMap::new(),
            stats: Stats { bytes_limit: options.limit, ..Stats::default() },
        }
    }

    /// The settings.
    pub fn options(&self) -> &VmmOptions {
        &self.options
    }

    fn span(&self, slot: u32) -> &Span {
        &self.spans[slot as usize]
    }

    fn span_mut(&mut self, slot: u32) -> &mut Span {
        &mut self.spans[slot as usize]
    }

    fn add(&mut self, span: Span) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            self.spans[slot as usize] = span;
            return slot;
        }
        let slot = u32::try_from(self.spans.len()).expect("fewer than 2^32 spans");
        self.spans.push(span);
        slot
    }

    fn tagged_list(&mut self, stream: Stream) -> &mut FreeList {
        let known = self.tagged.iter().position(|(known, _)| *known == stream);
        let at = known.unwrap_or_else(|| {
            self.tagged.push((stream, FreeList::new()));
            self.tagged.len() - 1
        });
        &mut self.tagged[at].1
    }

    /// Puts a span where it is found by its state.
    fn list(&mut self, slot: u32) {
        let Span { at, bytes, state, .. } = *self.span(slot);
        match state {
            State::Free(None) => self.free.insert(bytes, at, slot),
            State::Free(Some(stream)) => self.tagged_list(stream).insert(bytes, at, slot),
            State::Unmapped => {
                self.unmapped.insert(at, slot);
            }
            State::Used => {}
        }
    }

    fn unlist(&mut self, slot: u32) {
        let Span { at, bytes, state, .. } = *self.span(slot);
        match state {
            State::Free(None) => self.free.remove(bytes, at, slot),
            State::Free(Some(stream)) => self.tagged_list(stream).remove(bytes, at, slot),
            State::Unmapped => {
                self.unmapped.remove(&at);
            }
            State::Used => {}
        }
    }

    /// Cuts a span that is in no list to `bytes`; the rest, in no list either, comes after it.
    fn split(&mut self, slot: u32, bytes: u64) -> u32 {
        let whole = *self.span(slot);
        let (at, rest) = (whole.at + bytes, whole.bytes - bytes);
        let rest = self.add(Span { at, bytes: rest, prev: slot, ..whole });
        if whole.next != NONE {
            self.span_mut(whole.next).prev = rest;
        }
        let first = self.span_mut(slot);
        (first.bytes, first.next) = (bytes, rest);
        rest
    }

    /// Lists a span that is in no list, joined with neighbours of its state.
    fn list_joined(&mut self, slot: u32) {
        let Span { prev, next, state, .. } = *self.span(slot);
        if next != NONE && self.span(next).state == state {
            self.unlist(next);
            self.join(slot, next);
        }
        if prev != NONE && self.span(prev).state == state {
            self.unlist(prev);
            self.join(prev, slot);
            return self.list(prev);
        }
        self.list(slot);
    }

    /// `second` goes up in `first`, its neighbour below.
    fn join(&mut self, first: u32, second: u32) {
        let gone = *self.span(second);
        let span = self.span_mut(first);
        (span.bytes, span.next) = (span.bytes + gone.bytes, gone.next);
        if gone.next != NONE {
            self.span_mut(gone.next).prev = first;
        }
        self.vacate(second);
    }

    fn vacate(&mut self, slot: u32) {
        // A block of a slot that was vacated is no live block.
        self.span_mut(slot).state = State::Unmapped;
        self.vacant.push(slot);
    }

    fn best_fit(&self, rounded: u64, stream: Stream) -> Option<u32> {
        let own = self.tagged.iter().find(|(known, _)| *known == stream);
        let own = own.and_then(|(_, list)| list.best_fit(rounded));
        self.free.best_fit(rounded).into_iter().chain(own).min().map(|(_, _, slot)| slot)
    }

    /// Hands out the beginning of a free span.
    fn place(&mut self, slot: u32, rounded: u64, requested: u64) -> Block {
        self.unlist(slot);
        if self.span(slot).bytes > rounded {
            let rest = self.split(slot, rounded);
            self.list(rest);
        }
        let span = self.span_mut(slot);
        (span.state, span.requested) = (State::Used, requested);
        let at = span.at;
        self.stats.count_alloc(requested, rounded);
        Block::new(at, requested, rounded, u64::from(slot))
    }

    fn grow(&mut self, rounded: u64, driver: &mut dyn Driver) -> Result<u32, Cause> {
        let hole = match self.best_hole(rounded) {
            Some(hole) => hole,
            None => self.reserve(rounded, driver)?,
        };
        let missing = hole.missing_bytes();
        let available = self.options.limit - self.stats.pool_bytes;
        if missing > available && !self.unmap_others(missing - available, &hole, driver) {
            return Err(Cause::Limit);
        }
        if let Err(refusal) = self.map(&hole, driver) {
            // The driver has less than the limit promises: everything that can go makes room.
            let free = self.unmappable(&hole);
            if free == 0 || !self.unmap_others(free, &hole, driver) {
                return Err(Cause::Driver(refusal));
            }
            self.map(&hole, driver).map_err(Cause::Driver)?;
        }
        Ok(hole.slot)
    }

    fn granule(&self) -> u64 {
        // A pool smaller than its granule maps what it may hold at once, in the granules that devices have: below one
        // of those it holds nothing.
        let most = self.options.limit / (2 * MIB) * (2 * MIB);
        self.options.granule.min(most).max(2 * MIB)
    }

    /// The run of free and unmapped addresses that takes the fewest new granules, the lowest among equals.
    fn best_hole(&self, rounded: u64) -> Option<Hole> {
        let holes = self.unmapped.values().filter_map(|slot| self.hole_at(*slot, rounded));
        holes.min_by_key(|hole| (hole.missing_bytes(), hole.start))
    }

    /// A run of at least `rounded` bytes that begins at an unmapped span or at the free one before it.
    fn hole_at(&self, unmapped: u32, rounded: u64) -> Option<Hole> {
        let before = self.span(unmapped).prev;
        let slot =
            if before != NONE && self.span(before).state == FREE { before } else { unmapped };
        let start = self.span(slot).at;
        let end = start.checked_add(rounded)?;
        let mut missing = Vec::new();
        let mut here = slot;
        while here != NONE {
            let span = self.span(here);
            if span.at >= end {
                break;
            }
            match span.state {
                FREE => {}
                State::Unmapped => {
                    let bytes = round_up(end - span.at, self.granule()).min(span.bytes);
                    missing.push((here, bytes));
                }
                _ => return None,
            }
            if span.end() >= end {
                return Some(Hole { slot, start, end, missing });
            }
            here = span.next;
        }
        None
    }

    /// Addresses for four times the limit, or for the request where that is more; nothing lies behind them.
    fn reserve(&mut self, rounded: u64, driver: &mut dyn Driver) -> Result<Hole, Cause> {
        let free = driver.figures().free;
        let bytes = self.options.limit.saturating_mul(4).max(rounded);
        let refused = |cause| Cause::Driver(Refusal { asked: bytes, free, cause });
        let Some(memory) = driver.virtual_memory() else {
            return Err(refused(RefusalCause::Unsupported));
        };
        let granule = round_up(self.granule(), memory.granule());
        self.options.granule = granule;
        let bytes = round_up(bytes, granule);
        let base = memory.reserve(bytes).map_err(Cause::Driver)?;
        let (range, state) = (base, State::Unmapped);
        let slot =
            self.add(Span { at: base, bytes, requested: 0, range, prev: NONE, next: NONE, state });
        self.ranges.insert(base, Range { bytes, first: slot });
        self.list(slot);
        self.hole_at(slot, rounded).ok_or(refused(RefusalCause::Exhausted))
    }

    /// Maps what a hole lacks, all or nothing.
    fn map(&mut self, hole: &Hole, driver: &mut dyn Driver) -> Result<(), Refusal> {
        let granule = self.granule();
        let memory = driver.virtual_memory().expect("addresses were reserved");
        let missing =
            hole.missing.iter().map(|(slot, bytes)| (self.spans[*slot as usize].at, *bytes));
        let granules: Vec<(u64, u64)> =
            missing.flat_map(|(at, bytes)| granules(at, bytes, granule)).collect();
        for (done, (at, bytes)) in granules.iter().enumerate() {
            if let Err(refusal) = memory.map(*at, *bytes) {
                for (at, bytes) in granules[..done].iter().rev() {
                    memory.unmap(*at, *bytes);
                }
                self.stats.driver_refusals += 1;
                return Err(refusal);
            }
        }
        granules.iter().for_each(|(_, bytes)| self.stats.count_grow(*bytes));
        for (slot, bytes) in &hole.missing {
            self.unlist(*slot);
            if self.span(*slot).bytes > *bytes {
                let rest = self.split(*slot, *bytes);
                self.list(rest);
            }
            self.span_mut(*slot).state = FREE;
            self.list_joined(*slot);
        }
        Ok(())
    }

    /// Whole granules of a free span: where they begin and end.
    fn whole_granules(&self, span: &Span) -> Option<(u64, u64)> {
        let granule = self.granule();
        let first = span.range + round_up(span.at - span.range, granule);
        let last = match span.end() == span.range + self.ranges[&span.range].bytes {
            true => span.end(),
            false => span.range + (span.end() - span.range) / granule * granule,
        };
        (first < last).then_some((first, last))
    }

    /// Whole free granules outside a hole, by address, each with the slot of its span.
    fn free_granules(&self, but: &Hole) -> Vec<(u64, u64, u32)> {
        let all = self.free.chunks().map(|slot| (slot, self.span(slot)));
        let outside = all.filter(|(_, span)| span.at >= but.end || span.end() <= but.start);
        let mut granules: Vec<(u64, u64, u32)> = outside
            .filter_map(|(slot, span)| {
                let (first, last) = self.whole_granules(span)?;
                Some((first, last, slot))
            })
            .collect();
        granules.sort_unstable();
        granules
    }

    fn unmappable(&self, but: &Hole) -> u64 {
        self.free_granules(but).iter().map(|(first, last, _)| last - first).sum()
    }

    /// Unmaps free granules outside a hole, lowest address first, until `wanted` bytes are back; nothing if there are
    /// not so many.
    fn unmap_others(&mut self, wanted: u64, but: &Hole, driver: &mut dyn Driver) -> bool {
        let all = self.free_granules(but);
        if all.iter().map(|(first, last, _)| last - first).sum::<u64>() < wanted {
            return false;
        }
        let granule = self.granule();
        let mut back = 0;
        for (first, last, slot) in all {
            if back >= wanted {
                break;
            }
            let last = last.min(first + round_up(wanted - back, granule));
            self.unmap(slot, first, last, driver);
            back += last - first;
        }
        true
    }

    /// Takes the memory away from behind `first..last`, which lies within one free span.
    fn unmap(&mut self, slot: u32, first: u64, last: u64, driver: &mut dyn Driver) {
        let mut slot = slot;
        self.unlist(slot);
        let before = first - self.span(slot).at;
        if before > 0 {
            let rest = self.split(slot, before);
            self.list(slot);
            slot = rest;
        }
        if last < self.span(slot).end() {
            let rest = self.split(slot, last - first);
            self.list(rest);
        }
        let memory = driver.virtual_memory().expect("addresses were reserved");
        for (at, bytes) in granules(first, last - first, self.granule()) {
            memory.unmap(at, bytes);
            self.stats.count_shrink(bytes);
        }
        self.span_mut(slot).state = State::Unmapped;
        self.list_joined(slot);
    }

    /// Everything free is free for every stream.
    fn forget_streams(&mut self) {
        let tagged = self.tagged.iter().flat_map(|(_, list)| list.chunks());
        let mut tagged: Vec<(u64, u32)> = tagged.map(|slot| (self.span(slot).at, slot)).collect();
        tagged.sort_unstable();
        for (_, slot) in tagged {
            self.unlist(slot);
            self.span_mut(slot).state = FREE;
            self.list_joined(slot);
        }
    }

    /// Memory above what may stay goes back.
    fn release_above_keep(&mut self, driver: &mut dyn Driver) {
        let excess = self.stats.free_bytes().saturating_sub(self.options.keep);
        if excess > 0 {
            let all = self.unmappable(&Hole::NONE);
            self.unmap_others(excess.min(all), &Hole::NONE, driver);
        }
    }

    /// The spans of a range, by address, each with its slot.
    fn spans_of(&self, range: &Range) -> impl Iterator<Item = (u32, &Span)> {
        let mut slot = range.first;
        std::iter::from_fn(move || {
            let here = slot;
            let span = self.spans.get(here as usize)?;
            slot = span.next;
            Some((here, span))
        })
    }

    /// Every span, by address.
    fn all_spans(&self) -> impl Iterator<Item = (u32, &Span)> {
        self.ranges.values().flat_map(|range| self.spans_of(range))
    }

    /// Runs of mapped addresses: base and the spans in them.
    fn runs(&self) -> Vec<(u64, Vec<Span>)> {
        let mut runs: Vec<(u64, Vec<Span>)> = Vec::new();
        let mut follows = None;
        for (_, span) in self.all_spans() {
            if span.state == State::Unmapped {
                follows = None;
                continue;
            }
            match runs.last_mut().filter(|_| follows == Some((span.range, span.at))) {
                Some((_, spans)) => spans.push(*span),
                None => runs.push((span.at, vec![*span])),
            }
            follows = Some((span.range, span.end()));
        }
        runs
    }

    fn largest_free(&self) -> u64 {
        let tagged = self.tagged.iter().map(|(_, list)| list.largest());
        tagged.chain([self.free.largest()]).max().unwrap_or(0)
    }
}

/// A run of addresses that will hold a block once what it lacks is mapped.
struct Hole {
    /// The span that it begins with, and that its memory joins.
    slot: u32,
    start: u64,
    end: u64,
    /// Unmapped spans in it, and how many bytes of each it needs.
    missing: Vec<(u32, u64)>,
}

impl Hole {
    const NONE: Hole = Hole { slot: NONE, start: 0, end: 0, missing: Vec::new() };

    fn missing_bytes(&self) -> u64 {
        self.missing.iter().map(|(_, bytes)| bytes).sum()
    }
}

fn granules(at: u64, bytes: u64, granule: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(granule)).map(move |n| {
        let from = n * granule;
        (at + from, granule.min(bytes - from))
    })
}

impl MemoryResource for Vmm {
    fn allocate(
        &mut self,
        bytes: u64,
        stream: Stream,
        driver: &mut dyn Driver,
    ) -> Result<Block, AllocError> {
        if bytes == 0 {
            return Ok(Block::empty());
        }
        let rounded = round_up(bytes, UNIT);
        if rounded < bytes || rounded > self.options.limit - self.stats.bytes_in_use {
            return Err(AllocError::new(bytes, &self.stats(), driver, Cause::Limit));
        }
        let found = match self.best_fit(rounded, stream) {
            Some(slot) => Ok(slot),
            None => self.grow(rounded, driver),
        };
        // What other streams still use is free once they are done: the driver waits for them before it gives up.
        let found = match found {
            Err(_) if self.options.stream_ordered => {
                self.forget_streams();
                self.best_fit(rounded, stream).map_or_else(|| self.grow(rounded, driver), Ok)
            }
            found => found,
        };
        match found {
            Ok(slot) => Ok(self.place(slot, rounded, bytes)),
            Err(cause) => Err(AllocError::new(bytes, &self.stats(), driver, cause)),
        }
    }

    fn deallocate(&mut self, block: Block, stream: Stream, driver: &mut dyn Driver) {
        if block.is_empty() {
            return;
        }
        let slot = block.handle() as u32;
        let span = self.spans.get_mut(slot as usize);
        let span = span.filter(|span| span.state == State::Used && span.at == block.address());
        let span = span.unwrap_or_else(|| panic!("{block:?} is not a live block of this pool"));
        self.stats.count_free(span.requested, span.bytes);
        span.requested = 0;
        span.state = State::Free(self.options.stream_ordered.then_some(stream));
        self.list_joined(slot);
        if !self.options.stream_ordered {
            self.release_above_keep(driver);
        }
    }

    fn synchronize(&mut self, driver: &mut dyn Driver) {
        self.forget_streams();
        self.release_above_keep(driver);
    }

    fn trim(&mut self, driver: &mut dyn Driver) -> Trimmed {
        let before = self.stats;
        self.forget_streams();
        let all = self.unmappable(&Hole::NONE);
        self.unmap_others(all, &Hole::NONE, driver);
        for (base, Range { bytes, first }) in self.ranges.clone() {
            let span = self.span(first);
            if span.bytes == bytes && span.state == State::Unmapped {
                self.unlist(first);
                self.vacate(first);
                self.ranges.remove(&base);
                let memory = driver.virtual_memory().expect("addresses were reserved");
                memory.unreserve(base, bytes);
            }
        }
        let kept = |(base, spans): (u64, Vec<Span>)| {
            let used = || spans.iter().filter(|span| span.state == State::Used);
            Kept {
                base,
                bytes: spans.iter().map(|span| span.bytes).sum(),
                bytes_in_use: used().map(|span| span.bytes).sum(),
                pinned_by: used().map(|span| span.at).collect(),
                blocks: Vec::new(),
            }
        };
        Trimmed {
            released_bytes: before.pool_bytes - self.stats.pool_bytes,
            released_regions: self.stats.driver_frees - before.driver_frees,
            kept: self.runs().into_iter().map(kept).collect(),
        }
    }

    fn stats(&self) -> Stats {
        Stats { largest_free_block_bytes: self.largest_free(), ..self.stats }
    }

    fn reset_peak(&mut self) {
        self.stats.reset_peak();
    }

    fn upstream(&self) -> Option<&dyn MemoryResource> {
        None
    }

    fn describe(&self) -> String {
        let limit = format_bytes(self.options.limit);
        let granule = format_bytes(self.options.granule);
        match (self.options.stream_ordered, self.options.keep) {
            (false, u64::MAX) => {
                format!("vmm: granules of {granule}, mapped on demand, up to {limit}")
            }
            (false, keep) => {
                let keep = format_bytes(keep);
                format!("vmm: granules of {granule}, {keep} of free ones kept, up to {limit}")
            }
            (true, keep) => {
                let keep = format_bytes(keep.min(self.options.limit));
                format!("cuda_async: a stream-ordered pool up to {limit}, release threshold {keep}")
            }
        }
    }

    fn regions(&self) -> Vec<RegionFigures> {
        let figures = |(ordinal, (base, spans)): (usize, (u64, Vec<Span>))| {
            let used = || spans.iter().filter(|span| span.state == State::Used);
            let free = spans.iter().filter(|span| span.state != State::Used);
            RegionFigures {
                base,
                bytes: spans.iter().map(|span| span.bytes).sum(),
                ordinal: ordinal as u64,
                bytes_in_use: used().map(|span| span.bytes).sum(),
                live_blocks: used().count() as u64,
                largest_free: free.map(|span| span.bytes).max().unwrap_or(0),
            }
        };
        self.runs().into_iter().enumerate().map(figures).collect()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let mapped = self.all_spans().filter(|(_, span)| span.state != State::Unmapped);
        let chunk = |(slot, span): (u32, &Span)| Chunk {
            address: span.at,
            bytes: span.bytes,
            requested: span.requested,
            handle: u64::from(slot),
            state: match span.state {
                State::Used => ChunkState::Used,
                State::Free(None) | State::Unmapped => ChunkState::Free,
                State::Free(Some(_)) => ChunkState::Pending,
            },
        };
        mapped.map(chunk).collect()
    }

    fn check(&self) -> Result<(), Broken> {
        let stats = self.stats();
        stats.check()?;
        let (mut in_use, mut mapped) = (0, 0);
        for (base, range) in &self.ranges {
            let (mut at, mut before) = (*base, None);
            for (slot, span) in self.spans_of(range) {
                if span.at != at || span.range != *base {
                    return Err(Broken(format!("nothing lies at {at:#x}")));
                }
                if before == Some(span.state) && span.state != State::Used {
                    return Err(Broken(format!("two spans {:?} side by side", span.state)));
                }
                let listed = match span.state {
                    State::Free(None) => self.free.contains(span.bytes, at, slot),
                    State::Free(Some(stream)) => {
                        let mut lists = self.tagged.iter().filter(|(known, _)| *known == stream);
                        lists.any(|(_, list)| list.contains(span.bytes, at, slot))
                    }
                    State::Unmapped => self.unmapped.get(&at) == Some(&slot),
                    State::Used => true,
                };
                if !listed {
                    return Err(Broken(format!("{span:?} is in no list")));
                }
                in_use += if span.state == State::Used { span.bytes } else { 0 };
                mapped += if span.state == State::Unmapped { 0 } else { span.bytes };
                before = Some(span.state);
                at += span.bytes;
            }
            if at != base + range.bytes {
                return Err(Broken(format!("the range at {base:#x} is not tiled")));
            }
        }
        if (in_use, mapped) != (stats.bytes_in_use, stats.pool_bytes) {
            return Err(Broken(format!("in use {in_use}, mapped {mapped} but {stats:?}")));
        }
        Ok(())
    }
}
