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

use crate::resource::{AllocError, Cause, Chunk, ChunkState, Kept, RegionFigures, Trimmed};
use crate::{
    Block, Broken, Driver, MIB, MemoryResource, Refusal, RefusalCause, Stats, Stream, UNIT,
    format_bytes, round_up,
};
use std::collections::{BTreeMap, BTreeSet};

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

#[derive(Clone, Copy, Debug)]
struct Span {
    bytes: u64,
    requested: u64,
    /// Where its range of addresses begins: spans of two ranges never join.
    range: u64,
    state: State,
}

/// A pool over reserved addresses.
pub struct Vmm {
    options: VmmOptions,
    /// Everything reserved, by address; spans tile their ranges.
    spans: BTreeMap<u64, Span>,
    ranges: BTreeMap<u64, u64>,
    free: BTreeSet<(Option<Stream>, u64, u64)>,
    unmapped: BTreeSet<u64>,
    streams: BTreeSet<Stream>,
    stats: Stats,
}

impl Vmm {
    /// An empty pool: nothing is reserved before the first allocation.
    pub fn new(options: VmmOptions) -> Vmm {
        Vmm {
            options,
            spans: BTreeMap::new(),
            ranges: BTreeMap::new(),
            free: BTreeSet::new(),
            unmapped: BTreeSet::new(),
            streams: BTreeSet::new(),
            stats: Stats { bytes_limit: options.limit, ..Stats::default() },
        }
    }

    /// The settings.
    pub fn options(&self) -> &VmmOptions {
        &self.options
    }

    fn span(&self, at: u64) -> Span {
        self.spans[&at]
    }

    fn put(&mut self, at: u64, span: Span) {
        self.spans.insert(at, span);
        match span.state {
            State::Free(stream) => {
                self.free.insert((stream, span.bytes, at));
            }
            State::Unmapped => {
                self.unmapped.insert(at);
            }
            State::Used => {}
        }
    }

    fn take(&mut self, at: u64) -> Span {
        let span = self.spans.remove(&at).expect("a span lies where it was found");
        match span.state {
            State::Free(stream) => self.free.remove(&(stream, span.bytes, at)),
            State::Unmapped => self.unmapped.remove(&at),
            State::Used => true,
        };
        span
    }

    /// Puts a span in place, joined with neighbours of its range and state.
    fn put_joined(&mut self, at: u64, span: Span) {
        let (mut at, mut span) = (at, span);
        let joins = |other: &Span| other.range == span.range && other.state == span.state;
        let after = at + span.bytes;
        if self.spans.get(&after).is_some_and(joins) {
            span.bytes += self.take(after).bytes;
        }
        let before = self.spans.range(..at).next_back();
        let before =
            before.filter(|(_, other)| other.range == span.range && other.state == span.state);
        if let Some(start) = before.map(|(start, _)| *start) {
            span.bytes += self.take(start).bytes;
            at = start;
        }
        self.put(at, span);
    }

    fn best_fit(&self, rounded: u64, stream: Stream) -> Option<u64> {
        let of = |tag: Option<Stream>| {
            let fitting = (tag, rounded, 0)..=(tag, u64::MAX, u64::MAX);
            self.free.range(fitting).next().map(|(_, bytes, at)| (*bytes, *at))
        };
        let own = if self.options.stream_ordered { of(Some(stream)) } else { None };
        of(None).into_iter().chain(own).min().map(|(_, at)| at)
    }

    /// Hands out the beginning of a free span.
    fn place(&mut self, at: u64, rounded: u64, requested: u64) -> Block {
        let whole = self.take(at);
        if whole.bytes > rounded {
            self.put(at + rounded, Span { bytes: whole.bytes - rounded, ..whole });
        }
        self.put(at, Span { bytes: rounded, requested, state: State::Used, ..whole });
        self.stats.count_alloc(requested, rounded);
        Block::new(at, requested, rounded, at)
    }

    fn grow(&mut self, rounded: u64, driver: &mut dyn Driver) -> Result<u64, Cause> {
        let hole = match self.best_hole(rounded) {
            Some(hole) => hole,
            None => self.reserve(rounded, driver)?,
        };
        let missing: u64 = hole.missing.iter().map(|(_, bytes)| bytes).sum();
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
        Ok(hole.start)
    }

    fn granule(&self) -> u64 {
        // A pool smaller than its granule maps what it may hold at once, in the granules that devices have: below one
        // of those it holds nothing.
        let most = self.options.limit / (2 * MIB) * (2 * MIB);
        self.options.granule.min(most).max(2 * MIB)
    }

    /// The run of free and unmapped addresses that takes the fewest new granules, the lowest among equals.
    fn best_hole(&self, rounded: u64) -> Option<Hole> {
        let holes = self.unmapped.iter().filter_map(|at| self.hole_at(*at, rounded));
        holes.min_by_key(|hole| {
            (hole.missing.iter().map(|(_, bytes)| bytes).sum::<u64>(), hole.start)
        })
    }

    /// A run of at least `rounded` bytes that begins at an unmapped span or at the free one before it.
    fn hole_at(&self, unmapped: u64, rounded: u64) -> Option<Hole> {
        let range = self.span(unmapped).range;
        let before = self.spans.range(..unmapped).next_back();
        let before = before.filter(|(_, span)| span.range == range && span.state == FREE);
        let start = before.map_or(unmapped, |(at, _)| *at);
        let end = start.checked_add(rounded)?;
        let mut missing = Vec::new();
        let mut reached = start;
        for (at, span) in self.spans.range(start..) {
            if reached >= end {
                break;
            }
            if span.range != range || !matches!(span.state, FREE | State::Unmapped) {
                return None;
            }
            if span.state == State::Unmapped {
                let bytes = round_up(end - at, self.granule()).min(span.bytes);
                missing.push((*at, bytes));
            }
            reached = at + span.bytes;
        }
        (reached >= end).then_some(Hole { start, end, missing })
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
        self.ranges.insert(base, bytes);
        self.put(base, Span { bytes, requested: 0, range: base, state: State::Unmapped });
        self.hole_at(base, rounded).ok_or(refused(RefusalCause::Exhausted))
    }

    /// Maps what a hole lacks, all or nothing.
    fn map(&mut self, hole: &Hole, driver: &mut dyn Driver) -> Result<(), Refusal> {
        let granule = self.granule();
        let memory = driver.virtual_memory().expect("addresses were reserved");
        let granules = hole.missing.iter().flat_map(|(at, bytes)| granules(*at, *bytes, granule));
        let granules: Vec<(u64, u64)> = granules.collect();
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
        for (at, bytes) in &hole.missing {
            let whole = self.take(*at);
            if whole.bytes > *bytes {
                self.put(at + bytes, Span { bytes: whole.bytes - bytes, ..whole });
            }
            self.put_joined(*at, Span { bytes: *bytes, state: FREE, ..whole });
        }
        Ok(())
    }

    /// Whole granules of a free span: where they begin and end.
    fn whole_granules(&self, at: u64, span: &Span) -> Option<(u64, u64)> {
        let granule = self.granule();
        let first = span.range + round_up(at - span.range, granule);
        let end = at + span.bytes;
        let last = match end == span.range + self.ranges[&span.range] {
            true => end,
            false => span.range + (end - span.range) / granule * granule,
        };
        (first < last).then_some((first, last))
    }

    fn free_granules(&self, but: &Hole) -> Vec<(u64, u64)> {
        let all = self.free.range(..=(None, u64::MAX, u64::MAX)).map(|(_, _, at)| *at);
        let mut spans: Vec<(u64, u64)> = all
            .filter(|at| *at >= but.end || at + self.span(*at).bytes <= but.start)
            .filter_map(|at| self.whole_granules(at, &self.span(at)))
            .collect();
        spans.sort_unstable();
        spans
    }

    fn unmappable(&self, but: &Hole) -> u64 {
        self.free_granules(but).iter().map(|(first, last)| last - first).sum()
    }

    /// Unmaps free granules outside a hole, lowest address first, until `wanted` bytes are back; nothing if there are
    /// not so many.
    fn unmap_others(&mut self, wanted: u64, but: &Hole, driver: &mut dyn Driver) -> bool {
        if self.unmappable(but) < wanted {
            return false;
        }
        let granule = self.granule();
        let mut back = 0;
        for (first, last) in self.free_granules(but) {
            if back >= wanted {
                break;
            }
            let last = last.min(first + round_up(wanted - back, granule));
            self.unmap(first, last, driver);
            back += last - first;
        }
        true
    }

    /// Takes the memory away from behind `first..last`, which lies within one free span.
    fn unmap(&mut self, first: u64, last: u64, driver: &mut dyn Driver) {
        let (at, _) = self.spans.range(..=first).next_back().expect("a free span covers it");
        let at = *at;
        let whole = self.take(at);
        let end = at + whole.bytes;
        if at < first {
            self.put(at, Span { bytes: first - at, ..whole });
        }
        if last < end {
            self.put(last, Span { bytes: end - last, ..whole });
        }
        let memory = driver.virtual_memory().expect("addresses were reserved");
        for (at, bytes) in granules(first, last - first, self.granule()) {
            memory.unmap(at, bytes);
            self.stats.count_shrink(bytes);
        }
        self.put_joined(first, Span { bytes: last - first, state: State::Unmapped, ..whole });
    }

    /// Everything free is free for every stream.
    fn forget_streams(&mut self) {
        let tagged: Vec<u64> =
            self.free.range((Some(Stream(0)), 0, 0)..).map(|(_, _, at)| *at).collect();
        let mut tagged = tagged;
        tagged.sort_unstable();
        for at in tagged {
            let span = self.take(at);
            self.put_joined(at, Span { state: FREE, ..span });
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

    /// Runs of mapped addresses: base, bytes, and the spans in them.
    fn runs(&self) -> Vec<(u64, Vec<(u64, Span)>)> {
        let mut runs: Vec<(u64, Vec<(u64, Span)>)> = Vec::new();
        let mut follows = None;
        for (at, span) in &self.spans {
            if span.state == State::Unmapped {
                follows = None;
                continue;
            }
            match runs.last_mut().filter(|_| follows == Some((span.range, *at))) {
                Some((_, spans)) => spans.push((*at, *span)),
                None => runs.push((*at, vec![(*at, *span)])),
            }
            follows = Some((span.range, at + span.bytes));
        }
        runs
    }

    fn largest_free(&self) -> u64 {
        let largest = |tag: Option<Stream>| {
            let all = (tag, 0, 0)..=(tag, u64::MAX, u64::MAX);
            self.free.range(all).next_back().map_or(0, |(_, bytes, _)| *bytes)
        };
        let tags = self.streams.iter().map(|stream| Some(*stream)).chain([None]);
        tags.map(largest).max().unwrap_or(0)
    }
}

/// A run of addresses that will hold a block once what it lacks is mapped.
struct Hole {
    start: u64,
    end: u64,
    missing: Vec<(u64, u64)>,
}

impl Hole {
    const NONE: Hole = Hole { start: 0, end: 0, missing: Vec::new() };
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
        self.streams.insert(stream);
        let found = match self.best_fit(rounded, stream) {
            Some(at) => Ok(at),
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
            Ok(at) => Ok(self.place(at, rounded, bytes)),
            Err(cause) => Err(AllocError::new(bytes, &self.stats(), driver, cause)),
        }
    }

    fn deallocate(&mut self, block: Block, stream: Stream, driver: &mut dyn Driver) {
        if block.is_empty() {
            return;
        }
        let at = block.address();
        let used = self.spans.get(&at).is_some_and(|span| span.state == State::Used);
        assert!(used, "{block:?} is not a live block of this pool");
        let span = self.take(at);
        self.stats.count_free(span.requested, span.bytes);
        self.streams.insert(stream);
        let state = State::Free(self.options.stream_ordered.then_some(stream));
        self.put_joined(at, Span { requested: 0, state, ..span });
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
        for (base, bytes) in self.ranges.clone() {
            let unused = |span: &Span| span.bytes == bytes && span.state == State::Unmapped;
            if self.spans.get(&base).is_some_and(unused) {
                self.take(base);
                self.ranges.remove(&base);
                let memory = driver.virtual_memory().expect("addresses were reserved");
                memory.unreserve(base, bytes);
            }
        }
        let kept = |(base, spans): (u64, Vec<(u64, Span)>)| {
            let used = || spans.iter().filter(|(_, span)| span.state == State::Used);
            Kept {
                base,
                bytes: spans.iter().map(|(_, span)| span.bytes).sum(),
                bytes_in_use: used().map(|(_, span)| span.bytes).sum(),
                pinned_by: used().map(|(at, _)| *at).collect(),
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
        let figures = |(ordinal, (base, spans)): (usize, (u64, Vec<(u64, Span)>))| {
            let used = || spans.iter().filter(|(_, span)| span.state == State::Used);
            let free = spans.iter().filter(|(_, span)| span.state != State::Used);
            RegionFigures {
                base,
                bytes: spans.iter().map(|(_, span)| span.bytes).sum(),
                ordinal: ordinal as u64,
                bytes_in_use: used().map(|(_, span)| span.bytes).sum(),
                live_blocks: used().count() as u64,
                largest_free: free.map(|(_, span)| span.bytes).max().unwrap_or(0),
            }
        };
        self.runs().into_iter().enumerate().map(figures).collect()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let mapped = self.spans.iter().filter(|(_, span)| span.state != State::Unmapped);
        let chunk = |(at, span): (&u64, &Span)| Chunk {
            address: *at,
            bytes: span.bytes,
            requested: span.requested,
            handle: *at,
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
        for (base, bytes) in &self.ranges {
            let (mut at, mut before) = (*base, None);
            while at < base + bytes {
                let Some(span) = self.spans.get(&at).filter(|span| span.range == *base) else {
                    return Err(Broken(format!("nothing lies at {at:#x}")));
                };
                if before == Some(span.state) && span.state != State::Used {
                    return Err(Broken(format!("two spans {:?} side by side", span.state)));
                }
                let listed = match span.state {
                    State::Free(stream) => self.free.contains(&(stream, span.bytes, at)),
                    State::Unmapped => self.unmapped.contains(&at),
                    State::Used => true,
                };
                if !listed {
                    return Err(Broken(format!("{span:?} at {at:#x} is in no list")));
                }
                in_use += if span.state == State::Used { span.bytes } else { 0 };
                mapped += if span.state == State::Unmapped { 0 } else { span.bytes };
                before = Some(span.state);
                at += span.bytes;
            }
        }
        if (in_use, mapped) != (stats.bytes_in_use, stats.pool_bytes) {
            return Err(Broken(format!("in use {in_use}, mapped {mapped} but {stats:?}")));
        }
        Ok(())
    }
}
