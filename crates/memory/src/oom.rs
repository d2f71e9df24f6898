//! Out of memory: the ladder that tries to help, the verdict, and the report that proves it.

use crate::heap::{Heap, Request};
use crate::ledger::{EventKind, Site};
use crate::modes::{ModeName, ModeSpec};
use crate::replay::{self, Device, Part, Trace};
use crate::resource::{AllocError, Cause};
use crate::{Bfc, Block, Holder, MIB, Refusal, RefusalCause};
use std::fmt;

/// Why a request failed, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// More than the device has.
    TooBig,
    /// More than the mode's limit leaves beside what is in use.
    Limit,
    /// Enough is free, in pieces that cannot join.
    Fragmented,
    /// Another process holds what is missing.
    OtherProcess,
    /// Caches hold what is missing.
    Cached,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::TooBig => "too big",
            Verdict::Limit => "limit",
            Verdict::Fragmented => "fragmented",
            Verdict::OtherProcess => "other process",
            Verdict::Cached => "cached",
        })
    }
}

/// Draws the verdict from the facts. `cached` is what droppable caches hold in live blocks.
pub fn verdict(error: &AllocError, cached: u64) -> Verdict {
    if error.asked > error.device {
        return Verdict::TooBig;
    }
    // The pool could have grown; the driver had less than it would have without the others.
    let refused = matches!(error.cause, Cause::Driver(_));
    let fits_alone = error.asked <= error.driver_free.saturating_add(error.others);
    if refused && error.others > 0 && fits_alone {
        return Verdict::OtherProcess;
    }
    let rounded = Bfc::rounded(error.asked);
    let fits_beside = |in_use: u64| in_use.saturating_add(rounded) <= error.limit;
    match (fits_beside(error.in_use), fits_beside(error.in_use.saturating_sub(cached))) {
        (true, _) => Verdict::Fragmented,
        (false, true) => Verdict::Cached,
        (false, false) => Verdict::Limit,
    }
}

/// A rung of the ladder that the caller brings: it gives blocks back to the heap and says how many bytes it freed.
pub struct Rung<'a> {
    /// Its name: `dead arrays`, `caches`.
    pub name: &'static str,
    /// The deed.
    pub free: &'a mut dyn FnMut(&mut Heap) -> u64,
}

/// What a rung did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderStep {
    /// Its name.
    pub name: String,
    /// Bytes it freed.
    pub freed: u64,
    /// Why it did nothing, where a rule forbids it.
    pub note: Option<String>,
}

/// A request that failed after the whole ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderFailure {
    /// The facts of the last try.
    pub error: AllocError,
    /// What each rung did.
    pub steps: Vec<LadderStep>,
    /// Tries after the first.
    pub retries: u32,
}

/// A block, and what it took to get it.
#[derive(Debug)]
pub struct LadderSuccess {
    /// The block.
    pub block: Block,
    /// What each rung did that was climbed.
    pub steps: Vec<LadderStep>,
    /// Tries after the first.
    pub retries: u32,
}

impl Heap {
    /// Allocates; on failure climbs the caller's rungs, then returns empty regions where the mode's rules allow it, with
    /// a try after each rung that freed something.
    pub fn allocate_with(
        &mut self,
        request: Request,
        rungs: &mut [Rung<'_>],
    ) -> Result<LadderSuccess, Box<LadderFailure>> {
        let (mut steps, mut retries) = (Vec::new(), 0);
        let mut error = match self.attempt(request) {
            Ok(block) => return Ok(LadderSuccess { block, steps, retries }),
            Err(error) => error,
        };
        let mut climb = |heap: &mut Heap, step: LadderStep, error: &mut AllocError| {
            let freed = step.freed;
            steps.push(step);
            if freed == 0 {
                return None;
            }
            retries += 1;
            heap.attempt(request).map_err(|again| *error = again).ok()
        };
        let mut block = None;
        for rung in rungs {
            let freed = (rung.free)(self);
            let name = rung.name.to_string();
            self.ledger_mut().note(EventKind::Reclaim, request.now_ns, rung.name, freed);
            block = climb(self, LadderStep { name, freed, note: None }, &mut error);
            if block.is_some() {
                break;
            }
        }
        if block.is_none() {
            let step = self.region_rung(request.now_ns);
            block = climb(self, step, &mut error);
        }
        match block {
            Some(block) => Ok(LadderSuccess { block, steps, retries }),
            None => {
                self.record_oom(request);
                Err(Box::new(LadderFailure { error, steps, retries }))
            }
        }
    }

    /// Returns empty regions where the mode's rules allow it, else says why not.
    fn region_rung(&mut self, now_ns: u64) -> LadderStep {
        let name = "empty regions".to_string();
        match self.mode().keeps_empty_regions() {
            Some(why) => LadderStep { name, freed: 0, note: Some(format!("kept ({why})")) },
            None => LadderStep { name, freed: self.trim(now_ns).released_bytes, note: None },
        }
    }

    /// The report of a failure that has been recorded. `cached` is what droppable caches hold in live blocks.
    pub fn explain(&self, failure: &LadderFailure, cached: u64) -> OomReport {
        let stats = self.stats();
        let error = &failure.error;
        let site = self.ledger().site();
        let (drawn, passes_alone) = self.judge(error, cached, site);
        let driver_says = driver_says(error);
        let remedies = if driver_says.is_some() { Vec::new() } else { self.remedies(drawn, site) };
        let (empty, pinned): (Vec<_>, Vec<_>) =
            self.regions().into_iter().partition(|region| region.live_blocks == 0);
        OomReport {
            mode: self.mode().clone(),
            asked: error.asked,
            site,
            limit: error.limit,
            device: error.device,
            requested: stats.requested_bytes,
            in_use: stats.bytes_in_use,
            pool: stats.pool_bytes,
            largest_free: stats.largest_free_block_bytes,
            fragmentation: stats.fragmentation(),
            other_processes: error.others,
            passes_alone,
            driver_says,
            passes_afresh: self.passes_afresh(site),
            holders: self.guest_holders(),
            driver_free: error.driver_free,
            cached,
            verdict: drawn,
            ladder: failure.steps.clone(),
            retries: failure.retries,
            owners: self.top_owners(),
            empty_regions: empty.iter().map(|region| region.bytes).collect(),
            pinned_regions: pinned.iter().map(|region| region.bytes).collect(),
            advice: match drawn {
                Verdict::OtherProcess if error.others == self.guest_bytes() => {
                    "free what the other package holds, or lower XLA_CLIENT_MEM_FRACTION".into()
                }
                _ => advice(self.mode(), drawn, &remedies),
            },
            remedies,
        }
    }

    /// The verdict, and whether the same cell passes in the same mode where nobody else holds anything. What looks like
    /// fragments is the others' doing then: a pool that they made back off is too small for what its limit promised.
    fn judge(&self, error: &AllocError, cached: u64, site: Site) -> (Verdict, bool) {
        let drawn = verdict(error, cached);
        if error.others == 0 || !matches!(drawn, Verdict::Fragmented | Verdict::OtherProcess) {
            return (drawn, false);
        }
        let Some(trace) = self.trace_of(site) else { return (drawn, false) };
        let passes = replay::run(&trace, self.mode(), Device::of(error.device)).passes();
        (if passes { Verdict::OtherProcess } else { drawn }, passes)
    }

    /// Whether returning the regions and running the cell again is enough: a pool that others once made small, say.
    fn passes_afresh(&self, site: Site) -> bool {
        let stats = self.stats();
        if stats.bytes_in_use > 0 || stats.pool_bytes == 0 {
            return false;
        }
        let figures = self.device();
        let device = Device { capacity: figures.total, others: figures.others };
        let trace = self.trace_of(site).filter(|trace| trace.start == 0);
        trace.is_some_and(|trace| replay::run(&trace, self.mode(), device).passes())
    }

    /// The failed cell from the blocks that were live when it began.
    fn trace_of(&self, site: Site) -> Option<Trace> {
        let part = if site.cell > 0 { Part::Cell(site.cell) } else { Part::Kept };
        Trace::from_ledger(self.ledger(), part)
    }

    /// Whether requests of these sizes, held together, would pass in the pool as it is, by replay of what made it so.
    /// `None` where that is not known: an older pool still holds blocks, or the ledger has dropped its beginning.
    pub fn would_pass(&self, requests: &[u64]) -> Option<bool> {
        if !self.older_pools().is_empty() || self.ledger().dropped() > 0 {
            return None;
        }
        let mut trace = Trace::from_ledger(self.ledger(), Part::Now)?;
        let names = (1u64 << 62)..;
        let asked = names.zip(requests).filter(|(_, bytes)| **bytes > 0);
        trace
            .steps
            .extend(asked.map(|(id, bytes)| crate::replay::Step::Alloc { id, bytes: *bytes }));
        let figures = self.device();
        let device = Device { capacity: figures.total, others: figures.others };
        Some(replay::run(&trace, self.mode(), device).passes())
    }

    /// What to say when somebody beside us, in this process or another, asked the driver for `asked` bytes and got none:
    /// what we hold and what of it lives, and the modes in which the same session would have left room.
    pub fn explain_guest(&self, asked: u64) -> GuestReport {
        let figures = self.device();
        let device = Device { capacity: figures.total, others: figures.others };
        // Without the requests that failed: they would rule every mode out, and took nothing.
        let trace = Trace::from_ledger(self.ledger(), Part::Now).unwrap_or_default();
        let leaves_room = |mode: &ModeSpec| {
            let outcome = replay::run(&trace, mode, device);
            let taken = outcome.pool.saturating_add(figures.others);
            outcome.passes() && figures.total.saturating_sub(taken) >= asked
        };
        let mut passing = what_if_modes(self.mode().fraction());
        passing.retain(|mode| mode != self.mode() && leaves_room(mode));
        let smaller = SMALLER_FRACTIONS.into_iter().filter(|f| Some(*f) < self.mode().fraction());
        let mut smaller = smaller.filter_map(|f| self.mode().clone().with_fraction(f).ok());
        let modest = smaller.find(|mode| leaves_room(mode));
        GuestReport { passing, modest, ..self.guest_figures(asked) }
    }

    /// The figures of the device beside a neighbour that asks for `asked` bytes, with nothing replayed.
    pub fn guest_figures(&self, asked: u64) -> GuestReport {
        let (stats, figures) = (self.stats(), self.device());
        let regions = self.regions();
        let empty = regions.iter().filter(|region| region.live_blocks == 0);
        GuestReport {
            asked,
            refusal: None,
            trimmable: empty.map(|region| region.bytes).sum(),
            modest: None,
            driver_free: figures.free,
            held: figures.held,
            live: stats.bytes_in_use,
            others: figures.others,
            device: figures.total,
            passing: Vec::new(),
        }
    }

    fn top_owners(&self) -> Vec<TopOwner> {
        let top = self.ledger().by_owner().into_iter();
        let named = |figures: crate::ledger::OwnerFigures| TopOwner {
            name: self.ledger().owner(figures.owner).to_string(),
            site: figures.site,
            bytes: figures.bytes,
            requested: figures.requested,
            blocks: figures.blocks,
        };
        top.map(named).collect()
    }

    /// Each other mode, tried by replay of this cell from the blocks that were live when it began: what a switch and a
    /// second run of the cell would do.
    fn remedies(&self, drawn: Verdict, site: Site) -> Vec<Remedy> {
        let Some(trace) = self.trace_of(site) else { return Vec::new() };
        let figures = self.device();
        let device = Device { capacity: figures.total, others: figures.others };
        let remedy = |mode: ModeSpec| {
            let outcome = replay::run(&trace, &mode, device);
            let (passes, peak_in_use, pool) =
                (outcome.passes(), outcome.peak_in_use, outcome.peak_pool);
            Remedy { mode, passes, peak_in_use, pool }
        };
        self.candidates(drawn).into_iter().map(remedy).collect()
    }

    fn candidates(&self, drawn: Verdict) -> Vec<ModeSpec> {
        let now = self.mode();
        let mut all = what_if_modes(now.fraction());
        let wider = [0.9, 0.95].into_iter().filter(|wider| now.fraction() < Some(*wider));
        if drawn == Verdict::Limit && now.fraction().is_some() {
            all.extend(wider.filter_map(|fraction| now.clone().with_fraction(fraction).ok()));
        }
        if now.mode() == ModeName::Caching {
            let variants = ["caching expandable_segments=on", "caching max_split_size=128MiB"];
            all.extend(variants.iter().filter_map(|text| ModeSpec::parse(text).ok()));
        }
        all.retain(|mode| mode != now);
        all
    }
}

/// The modes that a what-if compares unless told otherwise: those of the table that say so, at their defaults, and `ondemand gc=on`; all with
/// `fraction`, where one is given and they have one.
pub fn what_if_modes(fraction: Option<f64>) -> Vec<ModeSpec> {
    let mut all = Vec::new();
    for entry in crate::modes::MODES.iter().filter(|entry| entry.compared) {
        all.push(ModeSpec::new(entry.mode));
        if entry.mode == ModeName::Ondemand {
            all.push(ModeSpec::parse("ondemand gc=on").expect("a mode of the table"));
        }
    }
    let with = |mode: ModeSpec| match (fraction, mode.fraction()) {
        (Some(fraction), Some(_)) if mode.mode() != ModeName::Caching => {
            mode.clone().with_fraction(fraction).unwrap_or(mode)
        }
        _ => mode,
    };
    all.into_iter().map(with).collect()
}

/// What a pool might be told to leave to others, largest first.
const SMALLER_FRACTIONS: [f64; 6] = [0.9, 0.75, 0.5, 0.25, 0.1, 0.05];

/// What a failed request of a neighbour comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestReport {
    /// Bytes that the neighbour asked for.
    pub asked: u64,
    /// Bytes free at the driver.
    pub driver_free: u64,
    /// Bytes that we hold from the driver.
    pub held: u64,
    /// Bytes of them in live blocks.
    pub live: u64,
    /// Bytes that other processes hold.
    pub others: u64,
    /// Size of the device.
    pub device: u64,
    /// The modes in which this session would have left room, by replay.
    pub passing: Vec<ModeSpec>,
    /// The present mode with the largest smaller fraction that was tried and would have left room, by replay.
    pub modest: Option<ModeSpec>,
    /// Bytes of our regions that hold no block.
    pub trimmable: u64,
    /// How the driver refused, where it was asked.
    pub refusal: Option<Refusal>,
}

/// An owner in an [`OomReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOwner {
    /// Who: `params[3].w`, `Out[3]`.
    pub name: String,
    /// The line that made its largest block.
    pub site: Site,
    /// Granted bytes.
    pub bytes: u64,
    /// Requested bytes.
    pub requested: u64,
    /// Blocks.
    pub blocks: u64,
}

/// A mode and whether the failed cell passes in it, by replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// The mode.
    pub mode: ModeSpec,
    /// Whether the cell passes.
    pub passes: bool,
    /// The most that was in use.
    pub peak_in_use: u64,
    /// The most that was held.
    pub pool: u64,
}

/// Everything there is to say about a failed request, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct OomReport {
    /// The mode that failed.
    pub mode: ModeSpec,
    /// Bytes asked for.
    pub asked: u64,
    /// The line that asked.
    pub site: Site,
    /// What the pool may never exceed.
    pub limit: u64,
    /// Size of the device.
    pub device: u64,
    /// Bytes that live blocks asked for.
    pub requested: u64,
    /// Bytes in live blocks, slack included.
    pub in_use: u64,
    /// Bytes held from the driver.
    pub pool: u64,
    /// The largest free chunk.
    pub largest_free: u64,
    /// Part of the free bytes outside the largest free chunk.
    pub fragmentation: f64,
    /// Bytes that others hold: other processes, and guests beside our pools.
    pub other_processes: u64,
    /// Without them the same cell passes in the same mode, by replay.
    pub passes_alone: bool,
    /// Nothing lives, and from an empty pool the same cell passes in the same mode, by replay: a trim is enough.
    pub passes_afresh: bool,
    /// Why the driver failed, where it did so for a reason of its own and not for want of room.
    pub driver_says: Option<String>,
    /// Who they are, as far as is known; guests first.
    pub holders: Vec<Holder>,
    /// Bytes free at the driver.
    pub driver_free: u64,
    /// What droppable caches hold in live blocks.
    pub cached: u64,
    /// Why.
    pub verdict: Verdict,
    /// What each rung of the ladder did.
    pub ladder: Vec<LadderStep>,
    /// Tries after the first.
    pub retries: u32,
    /// Who holds the bytes, largest first.
    pub owners: Vec<TopOwner>,
    /// Sizes of the regions that hold no block, in the order of their making.
    pub empty_regions: Vec<u64>,
    /// Sizes of the regions that hold a block, in the order of their making.
    pub pinned_regions: Vec<u64>,
    /// Each other mode, tried by replay.
    pub remedies: Vec<Remedy>,
    /// What to do in a real JAX program; empty where nothing helps.
    pub advice: String,
}

impl OomReport {
    /// Free bytes within the pool.
    pub fn free_in_pool(&self) -> u64 {
        self.pool - self.in_use
    }

    /// What the limit leaves beside the pool.
    pub fn left_under_limit(&self) -> u64 {
        self.limit.saturating_sub(self.pool)
    }

    /// The modes in which the cell passes, in order; the present one where a trim is enough.
    pub fn passing(&self) -> Vec<String> {
        let afresh = self.passes_afresh.then(|| format!("{} after %clear pool", self.mode));
        let passing = self.remedies.iter().filter(|remedy| remedy.passes);
        afresh.into_iter().chain(passing.map(|remedy| remedy.mode.to_string())).collect()
    }

    /// The verdict with the figures that prove it, in MiB.
    pub fn verdict_text(&self) -> String {
        let (asked, in_use) = (mib(self.asked), mib(self.in_use));
        let free = mib(self.free_in_pool());
        let left = mib(self.left_under_limit());
        if let Some(why) = &self.driver_says {
            return format!("THE DRIVER FAILED: {why} ({asked} asked, {in_use} in use)");
        }
        match self.verdict {
            Verdict::TooBig => {
                format!("TOO BIG: {asked} asked of a device of {}", mib(self.device))
            }
            Verdict::Limit => format!(
                "LIMIT: {in_use} in use and {asked} asked exceed the limit {} (the device has {})",
                mib(self.limit),
                mib(self.device)
            ),
            Verdict::OtherProcess => format!(
                "OTHER PROCESS: others hold {} of {}{}; {} left at the driver, {asked} asked{}",
                mib(self.other_processes),
                mib(self.device),
                self.holders_text(),
                mib(self.driver_free),
                if self.passes_alone { "; without them it passes (replayed)" } else { "" }
            ),
            Verdict::Cached => format!(
                "CACHED: {} of the {in_use} in use lie in caches; without them {asked} would fit",
                mib(self.cached)
            ),
            Verdict::Fragmented => format!(
                "FRAGMENTED: {in_use} live; {free} free {} (largest {}, {:.4}); {left} left under limit {}",
                self.pieces_text(),
                mib(self.largest_free),
                self.fragmentation,
                mib(self.limit)
            ),
        }
    }

    /// ` (pid 4711 vramlab 512.0, guest 1 in this process 64.0)`, largest first; empty where nobody is known.
    fn holders_text(&self) -> String {
        let mut holders: Vec<&Holder> = self.holders.iter().filter(|h| h.held > 0).collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.held));
        if holders.is_empty() {
            return String::new();
        }
        let named = holders.iter().take(NAMED_HOLDERS).map(|holder| holder.to_string());
        let mut names: Vec<String> = named.collect();
        if holders.len() > NAMED_HOLDERS {
            names.push(format!("{} more", holders.len() - NAMED_HOLDERS));
        }
        format!(" ({})", names.join(", "))
    }

    fn pieces_text(&self) -> String {
        if !self.pinned_regions.is_empty() || self.empty_regions.is_empty() {
            return "in chunks that cannot join".to_string();
        }
        let sizes: Vec<String> = self.empty_regions.iter().map(|bytes| whole_mib(*bytes)).collect();
        format!("in empty regions of {} that cannot join", sizes.join(", "))
    }
}

fn driver_says(error: &AllocError) -> Option<String> {
    match &error.cause {
        Cause::Driver(Refusal { cause: RefusalCause::Failed(why), .. }) => Some(why.clone()),
        _ => None,
    }
}

/// Holders that a verdict names before it counts the rest.
const NAMED_HOLDERS: usize = 4;

/// In MiB; what would round to nothing has its unit.
fn mib(bytes: u64) -> String {
    match bytes {
        1..=1023 => format!("{bytes} B"),
        1024..=52428 => format!("{:.1} K", bytes as f64 / 1024.0),
        _ => format!("{:.1}", bytes as f64 / MIB as f64),
    }
}

fn whole_mib(bytes: u64) -> String {
    if bytes.is_multiple_of(MIB) { (bytes / MIB).to_string() } else { mib(bytes) }
}

/// The line for the real program: the first mode that passes, in JAX's words.
fn advice(now: &ModeSpec, drawn: Verdict, remedies: &[Remedy]) -> String {
    if now.mode() == ModeName::Caching {
        let passing = remedies.iter().filter(|remedy| remedy.passes);
        let conf = passing.filter_map(|remedy| remedy.mode.torch_conf()).next();
        return conf.map_or(String::new(), |conf| format!("PYTORCH_CUDA_ALLOC_CONF={conf}"));
    }
    if drawn == Verdict::OtherProcess {
        return "end the other process, or lower its XLA_CLIENT_MEM_FRACTION".to_string();
    }
    let passing = |remedy: &&Remedy| remedy.passes && remedy.mode.has_jax_lines();
    let Some(remedy) = remedies.iter().find(passing) else { return String::new() };
    let (before, after) = (now.jax_lines(), remedy.mode.jax_lines());
    let mut lines: Vec<String> = before
        .iter()
        .filter(|line| !after.iter().any(|new| variable(new) == variable(line)))
        .map(|line| format!("remove {line}"))
        .collect();
    lines.extend(after.iter().filter(|line| !before.contains(line)).cloned());
    lines.join(" ")
}

fn variable(line: &str) -> &str {
    line.split('=').next().unwrap_or(line)
}
