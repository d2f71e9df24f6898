//! What a ledger is made of: events, owners, live blocks.

use crate::{BlockId, PoolId, Stream};
use std::fmt;

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

impl EventKind {
    /// The kind in one word, as files and tables write it.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Alloc => "alloc",
            EventKind::Free => "free",
            EventKind::RegionGrow => "region_grow",
            EventKind::RegionRelease => "region_release",
            EventKind::Map => "map",
            EventKind::Unmap => "unmap",
            EventKind::DriverRefusal => "driver_refusal",
            EventKind::ModeSwitch => "mode_switch",
            EventKind::Oom => "oom",
            EventKind::Reclaim => "reclaim",
            EventKind::BackOff => "back_off",
            EventKind::CellBegin => "cell_begin",
            EventKind::CellEnd => "cell_end",
            EventKind::ScopeBegin => "scope_begin",
            EventKind::ScopeEnd => "scope_end",
            EventKind::OwnerChange => "owner_change",
            EventKind::Migrate => "migrate",
            EventKind::Compile => "compile",
            EventKind::CacheInsert => "cache_insert",
            EventKind::CacheEvict => "cache_evict",
        }
    }
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

pub(super) const NOBODY: BlockId = BlockId::none();

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

    /// The allocation that made a block.
    pub fn making(live: &Live) -> Event {
        Event {
            address: live.address,
            requested: live.requested,
            granted: live.granted,
            block: live.block,
            owner: live.owner,
            stream: live.stream,
            site: live.site,
            pool: live.pool,
            ..Event::of(EventKind::Alloc, live.since_ns)
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

impl Live {
    /// The block that an allocation made.
    pub fn made_by(event: &Event) -> Live {
        Live {
            block: event.block,
            address: event.address,
            requested: event.requested,
            granted: event.granted,
            owner: event.owner,
            pool: event.pool,
            site: event.site,
            since_ns: event.time_ns,
            stream: event.stream,
        }
    }
}
