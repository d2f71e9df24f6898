//! What a switch of mode would do to the arrays that are live: computed, before anything moves.

use crate::heap::Heap;
use crate::modes::ModeSpec;
use crate::{Block, DriverFigures, Fake, FakeOptions, Stream, stack};
use std::fmt;

/// What becomes of the blocks that are live at a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// They move into the new pool.
    #[default]
    Migrate,
    /// They stay where they are; only new requests go to the new pool.
    NewOnly,
    /// The switch is refused while any is live.
    Refuse,
}

impl Policy {
    /// Every policy, in the order in which they are listed.
    pub const ALL: [Policy; 3] = [Policy::Migrate, Policy::NewOnly, Policy::Refuse];

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Migrate => "migrate",
            Policy::NewOnly => "new-only",
            Policy::Refuse => "refuse",
        }
    }

    /// Reads one of the names.
    pub fn parse(text: &str) -> Option<Policy> {
        let text = text.to_ascii_lowercase().replace('_', "-");
        Policy::ALL.into_iter().find(|policy| policy.name() == text)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the blocks would get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Road {
    /// Old and new pool side by side; one copy on the device.
    SideBySide,
    /// Through the host: the old pool goes first, because both do not fit together.
    ThroughHost,
    /// Nothing moves.
    Stay,
    /// It cannot be done.
    Refused,
}

/// The figures of a switch, computed by running the new stack on a [`Fake`] of the same size.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchPlan {
    /// The mode that answers now.
    pub from: ModeSpec,
    /// The mode asked for.
    pub to: ModeSpec,
    /// What becomes of live blocks.
    pub policy: Policy,
    /// How they get there.
    pub road: Road,
    /// Live blocks.
    pub arrays: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Bytes held from the driver now.
    pub old_pool: u64,
    /// Bytes that the new pool will hold right after the switch.
    pub new_pool: u64,
    /// The most that is held from the driver on the way.
    pub peak: u64,
    /// Size of the device.
    pub capacity: u64,
    /// Bytes that others hold.
    pub others: u64,
    /// Limit of the new pool.
    pub limit: u64,
}

impl SwitchPlan {
    /// Whether it can be done.
    pub fn fits(&self) -> bool {
        self.road != Road::Refused
    }

    /// Whether the bytes go through host memory on their way.
    pub fn staged_through_host(&self) -> bool {
        self.road == Road::ThroughHost
    }
}

/// Plans a switch of a heap. Nothing changes.
pub fn plan(heap: &Heap, to: &ModeSpec, policy: Policy) -> SwitchPlan {
    let stats = heap.stats();
    let figures = heap.device();
    let mut plan = SwitchPlan {
        from: heap.mode().clone(),
        to: to.clone(),
        policy,
        road: Road::Stay,
        arrays: heap.ledger().live_blocks() as u64,
        bytes: stats.requested_bytes,
        old_pool: stats.pool_bytes,
        new_pool: 0,
        peak: stats.pool_bytes,
        capacity: figures.total,
        others: figures.others,
        limit: stack::limit(to, figures.total),
    };
    if plan.arrays == 0 || policy == Policy::NewOnly {
        return plan;
    }
    if policy == Policy::Refuse {
        plan.road = Road::Refused;
        return plan;
    }
    let sizes: Vec<u64> = heap.ledger().live().iter().map(|live| live.requested).collect();
    let beside = simulate(to, &figures, figures.total - figures.free, &sizes);
    let alone = simulate(to, &figures, figures.others, &sizes);
    (plan.road, plan.new_pool, plan.peak) = match (beside, alone) {
        (Some(pool), _) => (Road::SideBySide, pool, plan.old_pool + pool),
        (None, Some(pool)) => (Road::ThroughHost, pool, plan.old_pool.max(pool)),
        (None, None) => (Road::Refused, 0, plan.old_pool),
    };
    plan
}

/// The pool of a fresh stack after these requests beside `taken` bytes; `None` if the driver refused anything on the
/// way, because then the pool would not be the one that the mode promises.
fn simulate(to: &ModeSpec, figures: &DriverFigures, taken: u64, sizes: &[u64]) -> Option<u64> {
    let granularity = figures.granularity.max(1);
    let options = FakeOptions { granularity, ..FakeOptions::of(figures.total) };
    let mut driver = Fake::with_options(options);
    driver.set_others(taken);
    let mut stack = stack::build(to, figures.total);
    let mut blocks: Vec<Block> = Vec::new();
    for bytes in sizes {
        blocks.push(stack.allocate(*bytes, Stream(0), &mut driver).ok()?);
    }
    let stats = stack.stats();
    (stats.driver_refusals == 0).then_some(stats.pool_bytes)
}
