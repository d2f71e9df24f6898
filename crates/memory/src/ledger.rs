//! One append-only stream of events. Every table, map, timeline, export and what-if is a fold over it.
//!
//! Bounded: a ring of the last events, counters over all of them, and at the ring's tail a checkpoint of the blocks
//! that were live there, so that a replay knows what it starts from. Times come from the caller, in nanoseconds.
//!
//! Absent on purpose: any view. A view is a function of [`Ledger::events`], [`Ledger::live`] and [`Ledger::totals`].

use crate::{Block, BlockId, PoolId, Stream};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// A block was handed out.
    Alloc,
    /// A block came back.
    Free,
    /// The driver gave a region.
    RegionGrow,
    /// A region went back to the driver.
    RegionRelease,
    /// Memory was put behind reserved addresses.
    Map,
    /// Memory was taken from behind reserved addresses.
    Unmap,
    /// The driver refused.
    DriverRefusal,
    /// Another mode answers from here on; the text names it.
    ModeSwitch,
    /// A request failed for good.
    Oom,
    /// A rung of the ladder freed bytes; the text names it.
    Reclaim,
    /// A preallocation got less than it asked for.
    BackOff,
    /// A cell began; the text is its number.
    CellBegin,
    /// The cell ended.
    CellEnd,
    /// A named scope began.
    ScopeBegin,
    /// The innermost named scope ended.
    ScopeEnd,
    /// A block changed hands.
    OwnerChange,
    /// A block moved to another pool; address and granted bytes are the new ones.
    Migrate,
    /// A program was compiled.
    Compile,
    /// An entry went into a cache.
    CacheInsert,
    /// An entry left a cache.
    CacheEvict,
}

/// How many kinds of event there are.
pub const EVENT_KINDS: usize = EventKind::CacheEvict as usize + 1;

/// Who holds a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Nobody said.
    Unknown,
    /// A session variable, with its path into containers: `params[3].w`.
    Variable(String),
    /// The value that a cell showed.
    Out(u32),
    /// An intermediate of an op or of an executable, by its name.
    Temporary(String),
    /// A constant that a compiled function captured, by the function's name.
    CapturedConstant(String),
    /// A residual kept for a gradient, by the function's name.
    Residual(String),
    /// A cache, by its name.
    Cache(String),
    /// Kept by the last error.
    LastError,
    /// Held by something without a name.
    MadeIn {
        /// The cell that made it.
        cell: u32,
        /// The line in that cell.
        line: u32,
    },
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Unknown => write!(f, "(unknown)"),
            Owner::Variable(path) => write!(f, "{path}"),
            Owner::Out(cell) => write!(f, "Out[{cell}]"),
            Owner::Temporary(of) => write!(f, "temporary of {of}"),
            Owner::CapturedConstant(of) => write!(f, "constant of {of}"),
            Owner::Residual(of) => write!(f, "residual of {of}"),
            Owner::Cache(name) => write!(f, "cache {name}"),
            Owner::LastError => write!(f, "the last error"),
            Owner::MadeIn { cell, line } => write!(f, "made in cell {cell}, line {line}"),
        }
    }
}

/// An interned [`Owner`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub u32);

/// An interned text of a ledger: the name of a mode, a scope, a rung.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

/// The line of source that was running. Cells and lines count from 1; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The cell's number.
    pub cell: u32,
    /// The line in that cell.
    pub line: u32,
}

const NOBODY: BlockId = BlockId::none();

/// One event. What a kind has no use for is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds of the caller's clock.
    pub time_ns: u64,
    /// Where on the device.
    pub address: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes held for it.
    pub granted: u64,
    /// The block.
    pub block: BlockId,
    /// Whose.
    pub owner: OwnerId,
    /// On which stream.
    pub stream: Stream,
    /// From which line of source.
    pub site: Site,
    /// A name, for the kinds that have one.
    pub text: TextId,
    /// In which pool.
    pub pool: PoolId,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// An event of a kind with everything else zero.
    pub fn of(kind: EventKind, time_ns: u64) -> Event {
        Event {
            time_ns,
            address: 0,
            requested: 0,
            granted: 0,
            block: NOBODY,
            owner: OwnerId(0),
            stream: Stream(0),
            site: Site::default(),
            text: TextId(0),
            pool: PoolId(0),
            kind,
        }
    }
}

/// A block that is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Its name.
    pub block: BlockId,
    /// Where it lies.
    pub address: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes held for it.
    pub granted: u64,
    /// Who holds it now.
    pub owner: OwnerId,
    /// Its pool.
    pub pool: PoolId,
    /// The line that made it.
    pub site: Site,
    /// When it was made.
    pub since_ns: u64,
    /// Its stream.
    pub stream: Stream,
}

/// Counters over all events, those that left the ring included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Granted bytes of live blocks.
    pub live_granted: u64,
    /// Requested bytes of live blocks.
    pub live_requested: u64,
    /// Granted bytes handed out so far.
    pub allocated_granted: u64,
    /// Requested bytes handed out so far.
    pub allocated_requested: u64,
    /// Granted bytes taken back so far.
    pub freed_granted: u64,
    /// Requested bytes taken back so far.
    pub freed_requested: u64,
    /// Bytes of regions held now.
    pub pool: u64,
    /// Events by kind.
    pub count: [u64; EVENT_KINDS],
}

impl Totals {
    const ZERO: Totals = Totals {
        live_granted: 0,
        live_requested: 0,
        allocated_granted: 0,
        allocated_requested: 0,
        freed_granted: 0,
        freed_requested: 0,
        pool: 0,
        count: [0; EVENT_KINDS],
    };

    /// Events of a kind.
    pub fn of(&self, kind: EventKind) -> u64 {
        self.count[kind as usize]
    }
}

/// What happened between the begin and the end of a scope, or until now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFigures {
    /// The scope's name; a cell's is its number.
    pub name: Arc<str>,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended, or the last event so far.
    pub end_ns: u64,
    /// Granted bytes live at its begin.
    pub live_at_begin: u64,
    /// Granted bytes live at its end.
    pub live: u64,
    /// Requested bytes live at its begin.
    pub requested_at_begin: u64,
    /// Requested bytes live at its end.
    pub requested: u64,
    /// The most granted bytes live within it.
    pub peak: u64,
    /// The most requested bytes live within it.
    pub peak_requested: u64,
    /// The most bytes held from the driver within it.
    pub peak_pool: u64,
    /// Granted bytes handed out within it.
    pub allocated: u64,
    /// Requested bytes handed out within it.
    pub allocated_requested: u64,
    /// Granted bytes taken back within it.
    pub freed: u64,
    /// Requested bytes taken back within it.
    pub freed_requested: u64,
    /// Blocks handed out within it.
    pub num_allocs: u64,
    /// Blocks taken back within it.
    pub num_frees: u64,
    /// Regions that came from the driver.
    pub driver_allocs: u64,
    /// Regions that went back to the driver.
    pub driver_frees: u64,
    /// Requests that the driver refused.
    pub driver_refusals: u64,
}

struct Scope {
    text: TextId,
    begin_ns: u64,
    at_begin: Totals,
    /// Since it began, or since [`Ledger::reset_peak`].
    peak: Peak,
    /// Before the last reset: the scope's own figure covers all of it.
    before_reset: Peak,
}

#[derive(Clone, Copy, Default)]
struct Peak {
    granted: u64,
    requested: u64,
    pool: u64,
}

impl Peak {
    fn now(totals: &Totals) -> Peak {
        Peak { granted: totals.live_granted, requested: totals.live_requested, pool: totals.pool }
    }

    fn raise(&mut self, other: Peak) {
        self.granted = self.granted.max(other.granted);
        self.requested = self.requested.max(other.requested);
        self.pool = self.pool.max(other.pool);
    }
}

/// Bytes and blocks of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerFigures {
    /// Who.
    pub owner: OwnerId,
    /// Granted bytes.
    pub bytes: u64,
    /// Requested bytes.
    pub requested: u64,
    /// Blocks.
    pub blocks: u64,
    /// The line that made the largest of them.
    pub site: Site,
}

/// The live blocks, each at the place that its name tells.
#[derive(Clone, Default)]
struct Places {
    slots: Vec<Live>,
    vacant: Vec<u32>,
    count: usize,
}

impl Places {
    fn get(&self, block: BlockId) -> Option<&Live> {
        self.slots.get(block.place()).filter(|live| live.block == block && block != NOBODY)
    }

    fn get_mut(&mut self, block: BlockId) -> Option<&mut Live> {
        self.slots.get_mut(block.place()).filter(|live| live.block == block && block != NOBODY)
    }

    fn insert(&mut self, live: Live) {
        let place = live.block.place();
        if place >= self.slots.len() {
            self.slots.resize(place + 1, Live::default());
        }
        self.count += 1;
        self.slots[place] = live;
    }

    fn remove(&mut self, block: BlockId) -> Option<Live> {
        let gone = std::mem::take(self.get_mut(block)?);
        self.count -= 1;
        Some(gone)
    }

    fn iter(&self) -> impl Iterator<Item = &Live> {
        self.slots.iter().filter(|live| live.block != NOBODY)
    }

    fn in_order(&self) -> Vec<Live> {
        let mut all: Vec<Live> = self.iter().copied().collect();
        all.sort_unstable_by_key(|live| live.block);
        all
    }
}

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
        self.recording = recording;
        if !recording {
            self.dropped += self.ring.len() as u64;
            self.ring.clear();
            self.checkpoint = self.live.clone();
        }
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
            EventKind::RegionGrow | EventKind::Map => self.totals.pool += event.granted,
            EventKind::RegionRelease | EventKind::Unmap => self.totals.pool -= event.granted,
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
            self.checkpoint_moves(&event);
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
        let mut peak = self.peak;
        for scope in &self.scopes {
            peak.raise(scope.peak);
        }
        (peak.granted, peak.requested, peak.pool)
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
        self.checkpoint.in_order()
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
        let mut largest: HashMap<OwnerId, (OwnerFigures, u64)> = HashMap::new();
        for live in self.live.iter() {
            let none = OwnerFigures {
                owner: live.owner,
                bytes: 0,
                requested: 0,
                blocks: 0,
                site: live.site,
            };
            let (figures, top) = largest.entry(live.owner).or_insert((none, 0));
            figures.bytes += live.granted;
            figures.requested += live.requested;
            figures.blocks += 1;
            if (live.granted, live.site) > (*top, figures.site) {
                *top = live.granted;
                figures.site = live.site;
            }
        }
        let mut all: Vec<OwnerFigures> =
            largest.into_values().map(|(figures, _)| figures).collect();
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

/// What an event does to the set of live blocks. `changed` is told what went and what came.
fn apply(live: &mut Places, event: &Event, mut changed: impl FnMut(Option<&Live>, Option<&Live>)) {
    match event.kind {
        EventKind::Alloc => {
            let made = Live {
                block: event.block,
                address: event.address,
                requested: event.requested,
                granted: event.granted,
                owner: event.owner,
                pool: event.pool,
                site: event.site,
                since_ns: event.time_ns,
                stream: event.stream,
            };
            changed(None, Some(&made));
            live.insert(made);
        }
        EventKind::Free => {
            if let Some(gone) = live.remove(event.block) {
                changed(Some(&gone), None);
            }
        }
        EventKind::OwnerChange => {
            if let Some(block) = live.get_mut(event.block) {
                block.owner = event.owner;
            }
        }
        EventKind::Migrate => {
            if let Some(block) = live.get_mut(event.block) {
                let before = *block;
                (block.address, block.granted, block.pool) =
                    (event.address, event.granted, event.pool);
                changed(Some(&before), Some(block));
            }
        }
        _ => {}
    }
}

fn count(totals: &mut Totals, before: Option<&Live>, after: Option<&Live>) {
    if let Some(gone) = before {
        totals.live_granted -= gone.granted;
        totals.live_requested -= gone.requested;
    }
    if let Some(made) = after {
        totals.live_granted += made.granted;
        totals.live_requested += made.requested;
    }
    // A block that moves is neither made nor freed.
    match (before, after) {
        (Some(gone), None) => {
            totals.freed_granted += gone.granted;
            totals.freed_requested += gone.requested;
        }
        (None, Some(made)) => {
            totals.allocated_granted += made.granted;
            totals.allocated_requested += made.requested;
        }
        _ => {}
    }
}
