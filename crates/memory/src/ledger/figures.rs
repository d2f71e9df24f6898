//! What is counted over the events: totals, scopes, peaks, owners.

use super::event::{EVENT_KINDS, EventKind, Live, OwnerId, Site, TextId};
use std::sync::Arc;

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
    /// Bytes that the driver gave so far.
    pub pool_grown: u64,
    /// Bytes that went back to the driver so far.
    pub pool_released: u64,
    /// Events by kind.
    pub count: [u64; EVENT_KINDS],
}

impl Totals {
    pub(super) const ZERO: Totals = Totals {
        live_granted: 0,
        live_requested: 0,
        allocated_granted: 0,
        allocated_requested: 0,
        freed_granted: 0,
        freed_requested: 0,
        pool: 0,
        pool_grown: 0,
        pool_released: 0,
        count: [0; EVENT_KINDS],
    };

    /// Blocks that are out. Frees of what was never allocated are not counted below none.
    pub fn live_blocks(&self) -> u64 {
        self.of(EventKind::Alloc).saturating_sub(self.of(EventKind::Free))
    }

    /// Regions held from the driver, or granules of mapped memory.
    pub fn regions(&self) -> u64 {
        let came = self.of(EventKind::RegionGrow) + self.of(EventKind::Map);
        came.saturating_sub(self.of(EventKind::RegionRelease) + self.of(EventKind::Unmap))
    }

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

pub(super) struct Scope {
    pub(super) text: TextId,
    pub(super) begin_ns: u64,
    pub(super) at_begin: Totals,
    /// Since it began, or since [`Ledger::reset_peak`].
    pub(super) peak: Peak,
    /// Before the last reset: the scope's own figure covers all of it.
    pub(super) before_reset: Peak,
}

/// The most of each figure at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Granted bytes of live blocks.
    pub granted: u64,
    /// Requested bytes of live blocks.
    pub requested: u64,
    /// Bytes held from the driver.
    pub pool: u64,
    /// Live blocks.
    pub blocks: u64,
    /// Regions, or granules of mapped memory.
    pub regions: u64,
}

impl Peak {
    pub(super) fn now(totals: &Totals) -> Peak {
        Peak {
            granted: totals.live_granted,
            requested: totals.live_requested,
            pool: totals.pool,
            blocks: totals.live_blocks(),
            regions: totals.regions(),
        }
    }

    pub(super) fn raise(&mut self, other: Peak) {
        self.granted = self.granted.max(other.granted);
        self.requested = self.requested.max(other.requested);
        self.pool = self.pool.max(other.pool);
        self.blocks = self.blocks.max(other.blocks);
        self.regions = self.regions.max(other.regions);
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

pub(super) fn count(totals: &mut Totals, before: Option<&Live>, after: Option<&Live>) {
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
