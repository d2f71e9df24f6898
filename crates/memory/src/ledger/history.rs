//! The kept events as a course of figures: arrays, in use, pool, and how the free bytes lie at each moment.
//!
//! A fold over the ledger like every other view. What is free follows from the events alone: a region is free when it
//! comes, a block takes its bytes from it and gives them back, neighbours within a region join. So this is no model of
//! an allocator and holds for all of them. One thing no event tells: a stream-ordered pool joins what different streams
//! freed only at a synchronisation; here it is joined at once.

use super::event::{Event, EventKind, TextId};
use super::{Ledger, Live};
use crate::{BlockId, PoolId};
use std::collections::{BTreeMap, HashMap};

/// The figures after an event. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Asked for by live blocks.
    pub requested: u64,
    /// Granted to live blocks.
    pub in_use: u64,
    /// Held from the driver.
    pub pool: u64,
    /// The largest free chunk of the pool that answers.
    pub largest_free: u64,
}

impl Moment {
    /// The part of the free bytes outside the largest free chunk, in millionths; 0 for a pool with nothing free.
    pub fn fragmentation(&self) -> u64 {
        let free = self.pool.saturating_sub(self.in_use);
        if free == 0 {
            return 0;
        }
        let scattered = u128::from(free.saturating_sub(self.largest_free)) * 1_000_000;
        ((scattered + u128::from(free) / 2) / u128::from(free)) as u64
    }
}

/// Whether an event of that kind changes a [`Moment`].
pub fn changes_memory(kind: EventKind) -> bool {
    use EventKind::{Alloc, Free, Map, Migrate, RegionGrow, RegionRelease, Unmap};
    matches!(kind, Alloc | Free | RegionGrow | RegionRelease | Map | Unmap | Migrate)
}

/// The figures before the first kept event.
pub fn begin(ledger: &Ledger) -> Moment {
    Course::at_begin(ledger).moment()
}

/// Shows every kept event with the figures after it. Gives the figures before the first one.
pub fn walk(ledger: &Ledger, mut see: impl FnMut(&Event, &Moment)) -> Moment {
    let mut course = Course::at_begin(ledger);
    let begin = course.moment();
    for event in ledger.events() {
        course.apply(event);
        see(event, &course.moment());
    }
    begin
}

/// What is held from the driver: regions, mapped memory, and the mode that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    mode: TextId,
    pool: PoolId,
    /// By base: size, pool, and whether it was mapped and so joins its neighbours.
    ranges: BTreeMap<u64, (u64, PoolId, bool)>,
}

impl Held {
    /// The mode that answered, as a text of the ledger, and its pool.
    pub fn mode(&self) -> (TextId, PoolId) {
        (self.mode, self.pool)
    }

    /// Base, bytes, pool, and whether it was mapped behind reserved addresses; by address.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, PoolId, bool)> + '_ {
        self.ranges.iter().map(|(base, (bytes, pool, mapped))| (*base, *bytes, *pool, *mapped))
    }

    pub(super) fn answers(&mut self, mode: TextId, pool: PoolId) {
        (self.mode, self.pool) = (mode, pool);
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match event.kind {
            EventKind::RegionGrow | EventKind::Map => {
                let mapped = event.kind == EventKind::Map;
                self.ranges.insert(event.address, (event.granted, event.pool, mapped));
            }
            EventKind::RegionRelease | EventKind::Unmap => {
                self.ranges.remove(&event.address);
            }
            EventKind::ModeSwitch => self.answers(event.text, event.pool),
            _ => {}
        }
    }
}

/// The state of the fold.
struct Course {
    held: Held,
    moment: Moment,
    live: HashMap<BlockId, Live>,
    free: Free,
}

impl Course {
    fn at_begin(ledger: &Ledger) -> Course {
        let mut course = Course {
            held: ledger.held_at_begin().clone(),
            moment: Moment::default(),
            live: HashMap::new(),
            free: Free::default(),
        };
        for (base, bytes, pool, mapped) in ledger.held_at_begin().ranges() {
            course.moment.pool += bytes;
            course.free.grow(base, bytes, pool, mapped);
        }
        for live in ledger.checkpoint() {
            course.take(live);
        }
        course
    }

    fn moment(&self) -> Moment {
        Moment { largest_free: self.free.largest(self.held.pool), ..self.moment }
    }

    fn take(&mut self, live: Live) {
        self.moment.requested += live.requested;
        self.moment.in_use += live.granted;
        self.free.remove(live.address, live.granted);
        self.live.insert(live.block, live);
    }

    fn give_back(&mut self, block: BlockId) -> Option<Live> {
        let live = self.live.remove(&block)?;
        self.moment.requested -= live.requested;
        self.moment.in_use -= live.granted;
        if let Some(pool) = self.pool_at(live.address) {
            self.free.give(live.address, live.granted, pool);
        }
        Some(live)
    }

    /// The pool that an address lies in; none once its region went back, as one does whose blocks wait in the host.
    fn pool_at(&self, address: u64) -> Option<PoolId> {
        let (base, (bytes, pool, _)) = self.held.ranges.range(..=address).next_back()?;
        (address - base < *bytes).then_some(*pool)
    }

    fn apply(&mut self, event: &Event) {
        match event.kind {
            EventKind::Alloc => self.take(Live::made_by(event)),
            EventKind::Free => {
                self.give_back(event.block);
            }
            EventKind::Migrate => {
                if let Some(live) = self.give_back(event.block) {
                    let (address, granted, pool) = (event.address, event.granted, event.pool);
                    self.take(Live { address, granted, pool, ..live });
                }
            }
            EventKind::RegionGrow | EventKind::Map => {
                self.held.apply(event);
                self.moment.pool += event.granted;
                let mapped = event.kind == EventKind::Map;
                self.free.grow(event.address, event.granted, event.pool, mapped);
            }
            EventKind::RegionRelease | EventKind::Unmap => {
                self.held.apply(event);
                self.moment.pool -= event.granted;
                let mapped = event.kind == EventKind::Unmap;
                self.free.shrink(event.address, event.granted, mapped);
            }
            _ => self.held.apply(event),
        }
    }
}

/// Free runs of addresses, joined where they may be.
#[derive(Default)]
struct Free {
    /// By address.
    runs: BTreeMap<u64, Run>,
    /// How many runs have a size, by pool.
    sizes: BTreeMap<(PoolId, u64), u32>,
    /// The edges of regions, which nothing joins across, with how many regions have them.
    edges: BTreeMap<u64, u32>,
}

#[derive(Clone, Copy)]
struct Run {
    bytes: u64,
    pool: PoolId,
}

impl Free {
    fn largest(&self, pool: PoolId) -> u64 {
        let of_pool = (pool, 0)..=(pool, u64::MAX);
        self.sizes.range(of_pool).next_back().map_or(0, |((_, bytes), _)| *bytes)
    }

    /// A range came: all of it is free. Mapped memory joins what lies beside it, a region keeps to itself.
    fn grow(&mut self, base: u64, bytes: u64, pool: PoolId, mapped: bool) {
        if !mapped {
            for edge in [base, base.saturating_add(bytes)] {
                *self.edges.entry(edge).or_default() += 1;
            }
        }
        self.give(base, bytes, pool);
    }

    /// A range went.
    fn shrink(&mut self, base: u64, bytes: u64, mapped: bool) {
        self.remove(base, bytes);
        if mapped {
            return;
        }
        for edge in [base, base.saturating_add(bytes)] {
            if let Some(count) = self.edges.get_mut(&edge) {
                *count -= 1;
                if *count == 0 {
                    self.edges.remove(&edge);
                }
            }
        }
    }

    /// Bytes are free again, joined with their neighbours.
    fn give(&mut self, at: u64, bytes: u64, pool: PoolId) {
        let (mut at, mut bytes) = (at, bytes);
        let end = at + bytes;
        if self.joins(end) && self.runs.get(&end).is_some_and(|run| run.pool == pool) {
            bytes += self.take(end).map_or(0, |run| run.bytes);
        }
        let before = self.runs.range(..at).next_back().map(|(start, run)| (*start, *run));
        if let Some((start, run)) = before
            && start + run.bytes == at
            && run.pool == pool
            && self.joins(at)
        {
            self.take(start);
            (at, bytes) = (start, bytes + run.bytes);
        }
        self.insert(at, Run { bytes, pool });
    }

    fn joins(&self, at: u64) -> bool {
        !self.edges.contains_key(&at)
    }

    /// Bytes are no longer free, wherever they were.
    fn remove(&mut self, at: u64, bytes: u64) {
        let end = at + bytes;
        let first = self.runs.range(..=at).next_back().map(|(start, _)| *start);
        let inside = self.runs.range(at..end).map(|(start, _)| *start);
        let touched: Vec<u64> = first.into_iter().chain(inside).collect();
        for start in touched {
            let reaches = self.runs.get(&start).is_some_and(|run| start + run.bytes > at);
            let Some(run) = reaches.then(|| self.take(start)).flatten() else { continue };
            let stop = start + run.bytes;
            if start < at {
                self.insert(start, Run { bytes: at - start, ..run });
            }
            if stop > end {
                self.insert(end, Run { bytes: stop - end, ..run });
            }
        }
    }

    fn insert(&mut self, at: u64, run: Run) {
        *self.sizes.entry((run.pool, run.bytes)).or_default() += 1;
        self.runs.insert(at, run);
    }

    fn take(&mut self, at: u64) -> Option<Run> {
        let run = self.runs.remove(&at)?;
        let key = (run.pool, run.bytes);
        let count = self.sizes.get_mut(&key).expect("a run is counted by its size");
        *count -= 1;
        if *count == 0 {
            self.sizes.remove(&key);
        }
        Some(run)
    }
}
