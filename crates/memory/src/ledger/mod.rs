//! One append-only stream of events. Every table, map, timeline, export and what-if is a fold over it.
//!
//! Bounded: a ring of the last events, counters over all of them, and at the ring's tail a checkpoint of the blocks
//! that were live there, so that a replay knows what it starts from. Times come from the caller, in nanoseconds.
//!
//! Absent on purpose: any view. A view is a function of [`Ledger::events`], [`Ledger::live`] and [`Ledger::totals`].

mod event;
mod figures;
pub mod history;
mod places;

pub use event::{EVENT_KINDS, Event, EventKind, Live, Owner, OwnerId, Site, TextId};
pub use figures::{OwnerFigures, Peak, ScopeFigures, Totals};
pub use history::{Moment, walk};

use crate::{Block, BlockId, PoolId, Stream};
use event::NOBODY;
use figures::{Scope, count};
use history::Held;
use places::{Places, apply};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How many events a ledger keeps unless told otherwise.
pub const RING: usize = 1_000_000;

/// The event stream of a heap.
pub struct Ledger {
    ring: VecDeque<Event>,
    capacity: usize,
    recording: bool,
    dropped: u64,
    live: Places,
    checkpoint: Places,
    /// What was held from the driver where the kept events begin, and in which mode.
    held: Held,
    sequence: u64,
    /// Places from here on were never named.
    unused: usize,
    totals: Totals,
    peak: Peak,
    scopes: Vec<Scope>,
    owners: Vec<Owner>,
    owner_ids: HashMap<Owner, OwnerId>,
    texts: Vec<Arc<str>>,
    text_ids: HashMap<Arc<str>, TextId>,
    site: Site,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger::new(RING)
    }
}

impl Ledger {
    /// A ledger that keeps the last `capacity` events.
    pub fn new(capacity: usize) -> Ledger {
        let mut ledger = Ledger {
            ring: VecDeque::new(),
            capacity: capacity.max(1),
            recording: true,
            dropped: 0,
            live: Places::default(),
            checkpoint: Places::default(),
            held: Held::default(),
            sequence: 0,
            unused: 0,
            totals: Totals::ZERO,
            peak: Peak::default(),
            scopes: Vec::new(),
            owners: Vec::new(),
            owner_ids: HashMap::new(),
            texts: Vec::new(),
            text_ids: HashMap::new(),
            site: Site::default(),
        };
        ledger.intern(Owner::Unknown);
        ledger.text("");
        ledger
    }

    /// Whether events are kept. Figures, live blocks and scopes are right either way.
    pub fn set_recording(&mut self, recording: bool) {
        if self.recording && !recording {
            self.dropped += self.ring.len() as u64;
            for gone in std::mem::take(&mut self.ring) {
                self.held.apply(&gone);
            }
            self.checkpoint = Places::default();
        }
        if recording && !self.recording {
            self.checkpoint = self.live.clone();
        }
        self.recording = recording;
    }

    /// Adds an event: the one door. The running line of source is filled in where the event has none.
    pub fn record(&mut self, event: Event) {
        let mut event = event;
        if event.site == Site::default() {
            event.site = self.site;
        }
        self.totals.count[event.kind as usize] += 1;
        apply(&mut self.live, &event, |before, after| count(&mut self.totals, before, after));
        if event.kind == EventKind::Free && event.block != NOBODY {
            self.live.vacant.push(event.block.place() as u32);
        }
        match event.kind {
            EventKind::RegionGrow | EventKind::Map => {
                self.totals.pool += event.granted;
                self.totals.pool_grown += event.granted;
            }
            EventKind::RegionRelease | EventKind::Unmap => {
                self.totals.pool -= event.granted;
                self.totals.pool_released += event.granted;
            }
            _ => {}
        }
        let now = Peak::now(&self.totals);
        match self.scopes.last_mut() {
            Some(scope) => scope.peak.raise(now),
            None => self.peak.raise(now),
        }
        if self.recording {
            self.keep(event);
        } else {
            self.dropped += 1;
            self.held.apply(&event);
        }
    }

    fn keep(&mut self, event: Event) {
        if self.ring.len() == self.capacity {
            let gone = self.ring.pop_front().expect("a full ring has a tail");
            self.dropped += 1;
            self.checkpoint_moves(&gone);
        }
        self.ring.push_back(event);
    }

    fn checkpoint_moves(&mut self, event: &Event) {
        apply(&mut self.checkpoint, event, |_, _| {});
        self.held.apply(event);
    }

    /// The mode and the pool that answer before the first event.
    pub fn set_first_mode(&mut self, name: &str, pool: PoolId) {
        let text = self.text(name);
        self.held.answers(text, pool);
    }

    /// Records that another mode answers from here on.
    pub fn switch(&mut self, time_ns: u64, name: &str, pool: PoolId) {
        let text = self.text(name);
        self.record(Event { text, pool, ..Event::of(EventKind::ModeSwitch, time_ns) });
    }

    /// A name for the next block; its place is free until that block is recorded and again once it is gone.
    pub fn next_block(&mut self) -> BlockId {
        self.sequence += 1;
        let unused = self.live.slots.len().max(self.unused) as u32;
        let place = self.live.vacant.pop().unwrap_or(unused);
        self.unused = self.unused.max(place as usize + 1);
        BlockId::new(self.sequence, place)
    }

    /// Records that a block was handed out.
    pub fn alloc(&mut self, time_ns: u64, block: &Block, owner: OwnerId, stream: Stream) {
        self.record(Event { owner, stream, ..of_block(EventKind::Alloc, time_ns, block) });
    }

    /// Records that a block comes back.
    pub fn free(&mut self, time_ns: u64, block: &Block, stream: Stream) {
        let owner = self.live.get(block.id()).map_or(OwnerId(0), |live| live.owner);
        self.record(Event { owner, stream, ..of_block(EventKind::Free, time_ns, block) });
    }

    /// Records that a block moved: the same name, in another pool.
    pub fn migrate(&mut self, time_ns: u64, block: &Block) {
        let owner = self.live.get(block.id()).map_or(OwnerId(0), |live| live.owner);
        self.record(Event { owner, ..of_block(EventKind::Migrate, time_ns, block) });
    }

    /// Gives a block to another owner; a block that is not live stays as it is.
    pub fn change_owner(&mut self, time_ns: u64, block: BlockId, owner: OwnerId) {
        let Some(live) = self.live.get(block) else { return };
        if live.owner == owner {
            return;
        }
        let (address, requested, granted, pool) =
            (live.address, live.requested, live.granted, live.pool);
        let event = Event::of(EventKind::OwnerChange, time_ns);
        self.record(Event { block, owner, address, requested, granted, pool, ..event });
    }

    /// Records an event that is only a name and two sizes: a compile, a cache entry, a rung, a mode.
    pub fn note(&mut self, kind: EventKind, time_ns: u64, name: &str, bytes: u64) {
        let text = self.text(name);
        self.record(Event { text, requested: bytes, granted: bytes, ..Event::of(kind, time_ns) });
    }

    /// The line of source that runs from here on.
    pub fn set_site(&mut self, site: Site) {
        self.site = site;
    }

    /// The line of source that runs now.
    pub fn site(&self) -> Site {
        self.site
    }

    /// A cell begins: the outermost scope.
    pub fn begin_cell(&mut self, time_ns: u64, cell: u32) {
        self.site = Site { cell, line: 1 };
        self.begin(EventKind::CellBegin, time_ns, &cell.to_string());
    }

    /// The cell ends, and with it whatever scopes an error left open.
    pub fn end_cell(&mut self, time_ns: u64) -> ScopeFigures {
        while self.scopes.len() > 1 {
            self.end(EventKind::ScopeEnd, time_ns);
        }
        let figures = self.end(EventKind::CellEnd, time_ns);
        self.site = Site::default();
        figures
    }

    /// A named scope begins within the present one.
    pub fn begin_scope(&mut self, time_ns: u64, name: &str) {
        self.begin(EventKind::ScopeBegin, time_ns, name);
    }

    /// The innermost scope ends. With none open, the figures of the whole stream.
    pub fn end_scope(&mut self, time_ns: u64) -> ScopeFigures {
        self.end(EventKind::ScopeEnd, time_ns)
    }

    fn begin(&mut self, kind: EventKind, time_ns: u64, name: &str) {
        let text = self.text(name);
        self.record(Event { text, ..Event::of(kind, time_ns) });
        let at_begin = self.totals;
        let peak = Peak::now(&self.totals);
        let before_reset = peak;
        self.scopes.push(Scope { text, begin_ns: time_ns, at_begin, peak, before_reset });
    }

    fn end(&mut self, kind: EventKind, time_ns: u64) -> ScopeFigures {
        let Some(scope) = self.scopes.pop() else { return self.whole(time_ns) };
        let figures = self.figures(&scope, time_ns);
        match self.scopes.last_mut() {
            Some(outer) => {
                outer.peak.raise(scope.peak);
                outer.before_reset.raise(scope.before_reset);
            }
            None => self.peak.raise(scope.peak),
        }
        let peak = figures.peak;
        let event = Event { text: scope.text, granted: peak, ..Event::of(kind, time_ns) };
        self.record(event);
        figures
    }

    fn whole(&self, time_ns: u64) -> ScopeFigures {
        let peak = self.peak;
        let before_reset = Peak::default();
        let at_begin = Totals::ZERO;
        let all = Scope { text: TextId(0), begin_ns: 0, at_begin, peak, before_reset };
        self.figures(&all, time_ns)
    }

    /// The figures so far of the innermost scope, or of the whole stream where none is open.
    pub fn scope(&self, time_ns: u64) -> ScopeFigures {
        match self.scopes.last() {
            Some(scope) => self.figures(scope, time_ns),
            None => self.whole(time_ns),
        }
    }

    /// How many scopes are open, the cell included.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    fn figures(&self, scope: &Scope, end_ns: u64) -> ScopeFigures {
        let (now, then) = (&self.totals, &scope.at_begin);
        let counted = |kind| now.of(kind) - then.of(kind);
        let mut peak = scope.peak;
        peak.raise(scope.before_reset);
        ScopeFigures {
            name: self.texts[scope.text.0 as usize].clone(),
            begin_ns: scope.begin_ns,
            end_ns,
            live_at_begin: then.live_granted,
            live: now.live_granted,
            requested_at_begin: then.live_requested,
            requested: now.live_requested,
            peak: peak.granted,
            peak_requested: peak.requested,
            peak_pool: peak.pool,
            allocated: now.allocated_granted - then.allocated_granted,
            allocated_requested: now.allocated_requested - then.allocated_requested,
            freed: now.freed_granted - then.freed_granted,
            freed_requested: now.freed_requested - then.freed_requested,
            num_allocs: counted(EventKind::Alloc),
            num_frees: counted(EventKind::Free),
            driver_allocs: counted(EventKind::RegionGrow) + counted(EventKind::Map),
            driver_frees: counted(EventKind::RegionRelease) + counted(EventKind::Unmap),
            driver_refusals: counted(EventKind::DriverRefusal),
        }
    }

    /// Counters over all events.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The most granted, requested and pool bytes since [`Ledger::reset_peak`].
    pub fn peaks(&self) -> (u64, u64, u64) {
        let peak = self.peak_figures();
        (peak.granted, peak.requested, peak.pool)
    }

    /// The most of every figure since [`Ledger::reset_peak`].
    pub fn peak_figures(&self) -> Peak {
        let mut peak = self.peak;
        for scope in &self.scopes {
            peak.raise(scope.peak);
        }
        peak
    }

    /// Peaks begin again at the present values. What an open scope reports at its end still covers all of it.
    pub fn reset_peak(&mut self) {
        let now = Peak::now(&self.totals);
        self.peak = now;
        for scope in &mut self.scopes {
            scope.before_reset.raise(scope.peak);
            scope.peak = now;
        }
    }

    /// The number of an owner; the same owner has the same number.
    pub fn intern(&mut self, owner: Owner) -> OwnerId {
        if let Some(id) = self.owner_ids.get(&owner) {
            return *id;
        }
        let id = OwnerId(u32::try_from(self.owners.len()).expect("fewer than 2^32 owners"));
        self.owners.push(owner.clone());
        self.owner_ids.insert(owner, id);
        id
    }

    /// The owner of that number.
    pub fn owner(&self, id: OwnerId) -> &Owner {
        &self.owners[id.0 as usize]
    }

    /// The number of a text; the same text has the same number.
    pub fn text(&mut self, text: &str) -> TextId {
        if let Some(id) = self.text_ids.get(text) {
            return *id;
        }
        let id = TextId(u32::try_from(self.texts.len()).expect("fewer than 2^32 texts"));
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.text_ids.insert(text, id);
        id
    }

    /// The text of that number.
    pub fn text_of(&self, id: TextId) -> &str {
        &self.texts[id.0 as usize]
    }

    /// The kept events, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> + ExactSizeIterator {
        self.ring.iter()
    }

    /// How many events are no longer kept: the index of the first kept one.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The blocks that were live where the kept events begin, in the order of their making.
    pub fn checkpoint(&self) -> Vec<Live> {
        let begin = if self.recording { &self.checkpoint } else { &self.live };
        begin.in_order()
    }

    /// What was held from the driver where the kept events begin, and in which mode.
    pub fn held_at_begin(&self) -> &Held {
        &self.held
    }

    /// The blocks that are live now, in the order of their making.
    pub fn live(&self) -> Vec<Live> {
        self.live.in_order()
    }

    /// How many blocks are live now.
    pub fn live_blocks(&self) -> usize {
        self.live.count
    }

    /// The live block of that name.
    pub fn find(&self, block: BlockId) -> Option<&Live> {
        self.live.get(block)
    }

    /// The live block that covers an address.
    pub fn at_address(&self, address: u64) -> Option<&Live> {
        self.live
            .iter()
            .find(|live| live.address <= address && address - live.address < live.granted)
    }

    /// Bytes and blocks by owner, largest first.
    pub fn by_owner(&self) -> Vec<OwnerFigures> {
        let mut live: Vec<&Live> = self.live.iter().collect();
        live.sort_unstable_by_key(|live| (live.owner, std::cmp::Reverse(live.granted), live.block));
        let figures = |group: &[&Live]| OwnerFigures {
            owner: group[0].owner,
            bytes: group.iter().map(|live| live.granted).sum(),
            requested: group.iter().map(|live| live.requested).sum(),
            blocks: group.len() as u64,
            site: group[0].site,
        };
        let groups = live.chunk_by(|a, b| a.owner == b.owner);
        let mut all: Vec<OwnerFigures> = groups.map(figures).collect();
        all.sort_unstable_by_key(|figures| (std::cmp::Reverse(figures.bytes), figures.owner));
        all
    }
}

fn of_block(kind: EventKind, time_ns: u64, block: &Block) -> Event {
    Event {
        address: block.address(),
        requested: block.requested(),
        granted: block.granted(),
        block: block.id(),
        pool: block.pool(),
        ..Event::of(kind, time_ns)
    }
}
