//! What if: the same requests through another mode, other options, another device.
//!
//! A [`Trace`] is a list of requests and returns; a [`Replay`] runs one, step by step, through the stack that the mode
//! would have had, on a [`Fake`]. It keeps nothing but the live blocks, so a trace may be streamed.

use crate::heap::{Heap, Request};
use crate::ledger::{Event, EventKind, Ledger, Live};
use crate::modes::ModeSpec;
use crate::names::Named;
use crate::oom::{Verdict, verdict};
use crate::resource::{AllocError, MemoryResource};
use crate::{Block, BlockId, Driver, Fake, FakeOptions, MIB, Stream, stack};
use std::collections::HashMap;

/// One step of a trace. Names are the trace's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request.
    Alloc {
        /// The name of the block.
        id: u64,
        /// Bytes wanted.
        bytes: u64,
    },
    /// A block goes back.
    Free {
        /// The name of the block.
        id: u64,
    },
}

impl Step {
    /// The name of its block.
    pub fn id(&self) -> u64 {
        match self {
            Step::Alloc { id, .. } | Step::Free { id } => *id,
        }
    }
}

/// From here on names belong to requests that failed; no block has such a name.
const FIRST_ATTEMPT: u64 = 1 << 63;

/// Which part of a ledger to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All that is kept, beginning with the blocks that were live at the tail.
    Kept,
    /// The last run of one cell, beginning with the blocks that were live when it began.
    Cell(u32),
    /// What made the pool what it is: all since the last switch of mode. Requests that failed are not asked again.
    Now,
}

/// Requests and returns in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The steps; the first [`Trace::start`] of them rebuild the state at the beginning.
    pub steps: Vec<Step>,
    /// How many blocks were live at the beginning.
    pub start: usize,
    /// Index of the first ledger event that is replayed, counted from the first event ever.
    pub from_event: u64,
}

impl Trace {
    /// A trace of steps from an empty device.
    pub fn new(steps: Vec<Step>) -> Trace {
        Trace { steps, start: 0, from_event: 0 }
    }

    /// The trace of a part of a ledger; `None` if the cell is not among the kept events.
    ///
    /// A request that failed there is asked again here. Where it passes, its block goes when its cell ends and another
    /// follows: what the program would have done with it is not known.
    pub fn from_ledger(ledger: &Ledger, part: Part) -> Option<Trace> {
        let events: Vec<&Event> = ledger.events().collect();
        let (first, last) = match part {
            Part::Kept => (0, events.len()),
            Part::Now => (after_last_switch(&events), events.len()),
            Part::Cell(cell) => span_of_cell(ledger, &events, cell)?,
        };
        let live = live_at(ledger.checkpoint(), &events[..first]);
        let mut trace = Trace {
            start: live.len(),
            from_event: ledger.dropped() + first as u64,
            steps: live.iter().map(|(id, bytes)| Step::Alloc { id: *id, bytes: *bytes }).collect(),
        };
        trace.extend(&events[first..last]);
        if part == Part::Now {
            trace.steps.retain(|step| step.id() < FIRST_ATTEMPT);
        }
        Some(trace)
    }

    fn extend(&mut self, events: &[&Event]) {
        // Failed requests get names that no block has.
        let mut next_attempt = FIRST_ATTEMPT;
        let mut attempts = Vec::new();
        for event in events {
            match event.kind {
                EventKind::Alloc => {
                    self.steps
                        .push(Step::Alloc { id: event.block.sequence(), bytes: event.requested });
                }
                EventKind::Free => self.steps.push(Step::Free { id: event.block.sequence() }),
                EventKind::Oom => {
                    self.steps.push(Step::Alloc { id: next_attempt, bytes: event.requested });
                    attempts.push(next_attempt);
                    next_attempt += 1;
                }
                EventKind::CellEnd => {
                    self.steps.extend(attempts.drain(..).map(|id| Step::Free { id }));
                }
                _ => {}
            }
        }
    }

    /// The most bytes that are wanted at once: no device below it can do.
    pub fn peak_requested(&self) -> u64 {
        let mut live = HashMap::new();
        let (mut now, mut peak) = (0u64, 0u64);
        for step in &self.steps {
            match step {
                Step::Alloc { id, bytes } => {
                    let before = live.insert(*id, *bytes).unwrap_or(0);
                    now = (now - before).saturating_add(*bytes);
                }
                Step::Free { id } => now -= live.remove(id).unwrap_or(0),
            }
            peak = peak.max(now);
        }
        peak
    }
}

fn after_last_switch(events: &[&Event]) -> usize {
    let switch = |event: &&Event| event.kind == EventKind::ModeSwitch;
    events.iter().rposition(switch).map_or(0, |at| at + 1)
}

fn span_of_cell(ledger: &Ledger, events: &[&Event], cell: u32) -> Option<(usize, usize)> {
    let name = cell.to_string();
    let begins =
        |event: &&Event| event.kind == EventKind::CellBegin && ledger.text_of(event.text) == name;
    let first = events.iter().rposition(begins)?;
    let ends = |event: &&Event| event.kind == EventKind::CellEnd;
    let last = events[first..].iter().position(ends).map(|past| first + past);
    Some((first, last.unwrap_or(events.len())))
}

/// Names and requested bytes of the blocks live after some events, in the order of their making.
fn live_at(checkpoint: Vec<Live>, events: &[&Event]) -> Vec<(u64, u64)> {
    let mut live: std::collections::BTreeMap<BlockId, u64> =
        checkpoint.into_iter().map(|live| (live.block, live.requested)).collect();
    for event in events {
        match event.kind {
            EventKind::Alloc => {
                live.insert(event.block, event.requested);
            }
            EventKind::Free => {
                live.remove(&event.block);
            }
            _ => {}
        }
    }
    live.into_iter().map(|(block, bytes)| (block.sequence(), bytes)).collect()
}

/// The device that a replay runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its size in bytes.
    pub capacity: u64,
    /// Bytes that other processes hold all the while.
    pub others: u64,
}

impl Device {
    /// A device that is ours alone.
    pub fn of(capacity: u64) -> Device {
        Device { capacity, others: 0 }
    }
}

/// The first request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of the step.
    pub step: u64,
    /// Bytes asked for.
    pub asked: u64,
    /// Why, in one word.
    pub verdict: Verdict,
    /// The facts.
    pub error: AllocError,
}

/// What came of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The mode it ran in.
    pub mode: ModeSpec,
    /// The device it ran on.
    pub device: Device,
    /// The first failure, where the run stopped; `None` if all passed.
    pub failure: Option<Failure>,
    /// The most granted bytes at once.
    pub peak_in_use: u64,
    /// Fragmentation at that moment.
    pub fragmentation_at_peak: f64,
    /// The most requested bytes at once.
    pub peak_requested: u64,
    /// The most bytes held from the driver at once.
    pub peak_pool: u64,
    /// Bytes held from the driver when it stopped.
    pub pool: u64,
    /// Fragmentation when it stopped.
    pub fragmentation: f64,
    /// Calls to the driver, refused ones included.
    pub driver_calls: u64,
    /// Steps that ran.
    pub steps: u64,
    /// Returns of blocks that were never handed out, or twice; they are ignored.
    pub strays: u64,
}

impl Outcome {
    /// Whether every request was answered.
    pub fn passes(&self) -> bool {
        self.failure.is_none()
    }
}

/// A size of device on which a trace passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// The size in bytes.
    pub bytes: u64,
    /// Whether the next smaller one fails, by a run. Otherwise the search ended before that.
    pub exact: bool,
}

/// What a search for the smallest device begins with and may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// The most bytes that are wanted at once.
    pub peak_requested: u64,
    /// Sizes are multiples of this.
    pub granule: u64,
    /// The largest size to try.
    pub most: u64,
    /// A size that is known to pass.
    pub known: Option<u64>,
    /// How many runs it may take.
    pub runs: u32,
}

impl Search {
    /// Looks for the smallest device of a mode that `passes`, which runs the trace on a device of so many bytes.
    ///
    /// The least conceivable size is tried first: modes without holes pass there. Then larger ones in growing steps,
    /// or the size that is known; then halves between what failed last and what passed. A search that runs out of
    /// runs gives what passed, and says that it may not be the smallest.
    pub fn smallest(
        self,
        mode: &ModeSpec,
        mut passes: impl FnMut(u64) -> bool,
    ) -> Option<Smallest> {
        let least = (self.peak_requested as f64 / mode.fraction().unwrap_or(1.0)) as u64;
        let least = least.div_ceil(self.granule).max(1);
        let most = self.most / self.granule;
        if least > most {
            return None;
        }
        let mut runs = self.runs;
        let mut try_one = |granules: u64| {
            let left = runs.checked_sub(1)?;
            runs = left;
            Some(passes(granules * self.granule))
        };
        let known = self.known.map(|bytes| bytes.div_ceil(self.granule));
        let size = |granules: u64, exact| Some(Smallest { bytes: granules * self.granule, exact });
        if known.is_some_and(|known| known <= least) {
            return size(known.unwrap_or(least), true);
        }
        let mut fails = least;
        let mut passing = known;
        match try_one(least) {
            Some(true) => return size(least, true),
            Some(false) => {}
            None => return size(known?, false),
        }
        let mut step = (least / 64).max(1);
        while passing.is_none() {
            let next = fails.saturating_add(step).min(most);
            if next <= fails {
                return None;
            }
            match try_one(next)? {
                true => passing = Some(next),
                false => fails = next,
            }
            step = step.saturating_mul(2);
        }
        let mut passing = passing?;
        while passing - fails > 1 {
            let middle = fails + (passing - fails) / 2;
            match try_one(middle) {
                Some(true) => passing = middle,
                Some(false) => fails = middle,
                None => return size(passing, false),
            }
        }
        size(passing, true)
    }
}

/// A replay in progress.
pub struct Replay {
    mode: ModeSpec,
    device: Device,
    driver: Fake,
    resource: Box<dyn MemoryResource>,
    live: Named<u64, Block>,
    in_use: u64,
    peak: Peak,
    failure: Option<Failure>,
    steps: u64,
    strays: u64,
}

/// The most that was in use. Its fragmentation is read off when it is left, since a climb passes many peaks.
#[derive(Default)]
struct Peak {
    in_use: u64,
    fragmentation: f64,
    is_now: bool,
}

impl Replay {
    /// A replay on an empty device.
    pub fn new(mode: &ModeSpec, device: Device) -> Replay {
        let mut driver = Fake::with_options(FakeOptions::of(device.capacity));
        driver.set_others(device.others);
        Replay {
            resource: stack::build(mode, device.capacity),
            mode: mode.clone(),
            device,
            driver,
            live: Named::default(),
            in_use: 0,
            peak: Peak::default(),
            failure: None,
            steps: 0,
            strays: 0,
        }
    }

    /// Runs one step on the default stream; after a failure nothing runs any more. Says whether it still runs.
    pub fn step(&mut self, step: Step) -> bool {
        self.step_on(step, Stream(0))
    }

    /// Runs one step on a stream; after a failure nothing runs any more. Says whether it still runs.
    pub fn step_on(&mut self, step: Step, stream: Stream) -> bool {
        if self.failure.is_some() {
            return false;
        }
        match step {
            Step::Alloc { id, bytes } => self.alloc(id, bytes, stream),
            Step::Free { id } => match self.live.remove(&id) {
                Some(block) => self.free(block, stream),
                None => self.strays += 1,
            },
        }
        self.steps += u64::from(self.failure.is_none());
        self.failure.is_none()
    }

    fn alloc(&mut self, id: u64, bytes: u64, stream: Stream) {
        match self.resource.allocate(bytes, stream, &mut self.driver) {
            Ok(block) => {
                self.in_use += block.granted();
                if self.in_use > self.peak.in_use {
                    self.peak.in_use = self.in_use;
                    self.peak.is_now = true;
                }
                // A name that is used twice: the first block is out of reach and goes.
                if let Some(lost) = self.live.insert(id, block) {
                    self.strays += 1;
                    self.free(lost, stream);
                }
            }
            Err(error) => {
                let verdict = verdict(&error, 0);
                self.failure = Some(Failure { step: self.steps, asked: bytes, verdict, error });
            }
        }
    }

    fn free(&mut self, block: Block, stream: Stream) {
        if self.peak.is_now {
            self.peak.fragmentation = self.resource.stats().fragmentation();
            self.peak.is_now = false;
        }
        self.in_use -= block.granted();
        self.resource.deallocate(block, stream, &mut self.driver);
    }

    /// The figures so far.
    pub fn outcome(&self) -> Outcome {
        let stats = self.resource.stats();
        Outcome {
            mode: self.mode.clone(),
            device: self.device,
            failure: self.failure.clone(),
            peak_in_use: stats.peak_bytes_in_use,
            fragmentation_at_peak: match self.peak.is_now {
                true => stats.fragmentation(),
                false => self.peak.fragmentation,
            },
            peak_requested: stats.peak_requested_bytes,
            peak_pool: stats.peak_pool_bytes,
            pool: stats.pool_bytes,
            fragmentation: stats.fragmentation(),
            driver_calls: stats.driver_calls(),
            steps: self.steps,
            strays: self.strays,
        }
    }
}

/// Runs a trace in a mode on a device.
pub fn run(trace: &Trace, mode: &ModeSpec, device: Device) -> Outcome {
    let mut replay = Replay::new(mode, device);
    for step in &trace.steps {
        if !replay.step(*step) {
            break;
        }
    }
    replay.outcome()
}

/// The smallest device on which a trace passes in a mode, to `granule` bytes; `None` if even `most` bytes are too few.
///
/// Method: the least conceivable size (the peak of what is wanted, and of what its fraction allows) is tried first;
/// then sizes double until one passes, and the step between the last failure and the first success is halved. Passing
/// is not monotone in size (a larger limit makes larger regions, which may leave worse holes), so what is found is a
/// size that passes while the next smaller one fails, not a proof that none below passes.
pub fn smallest_device(trace: &Trace, mode: &ModeSpec, granule: u64, most: u64) -> Option<u64> {
    let passes = |granules: u64| run(trace, mode, Device::of(granules * granule)).passes();
    let least = (trace.peak_requested() as f64 / mode.fraction().unwrap_or(1.0)) as u64;
    let most = most / granule;
    let mut fails = (least / granule).max(1) - 1;
    let mut passing = fails + 1;
    while !passes(passing) {
        fails = passing;
        if passing >= most {
            return None;
        }
        passing = (passing + passing - least / granule + 1).min(most);
    }
    while passing - fails > 1 {
        let middle = fails + (passing - fails) / 2;
        if passes(middle) {
            passing = middle;
        } else {
            fails = middle;
        }
    }
    Some(passing * granule)
}

/// One row of a what-if table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What came of it on the device asked about.
    pub outcome: Outcome,
    /// The smallest device that passes, in MiB rounded up; `None` beyond 64 times the device asked about.
    pub smallest_device_mib: Option<u64>,
}

/// A trace in several modes on one device.
pub fn what_if(trace: &Trace, modes: &[ModeSpec], device: Device) -> Vec<Row> {
    let most = device.capacity.saturating_mul(64).max(trace.peak_requested().saturating_mul(8));
    let row = |mode: &ModeSpec| Row {
        outcome: run(trace, mode, device),
        smallest_device_mib: smallest_device(trace, mode, MIB, most).map(|bytes| bytes / MIB),
    };
    modes.iter().map(row).collect()
}

/// A trace run through a heap, ledger and all; used to measure what the ledger costs.
pub fn run_in_heap(trace: &Trace, heap: &mut Heap) -> Result<(), AllocError> {
    let mut live = HashMap::new();
    for (at, step) in trace.steps.iter().enumerate() {
        let now_ns = at as u64;
        match step {
            Step::Alloc { id, bytes } => {
                let block = heap.allocate(Request { now_ns, ..Request::of(*bytes) })?;
                if let Some(lost) = live.insert(*id, block) {
                    heap.deallocate(lost, Stream(0), now_ns);
                }
            }
            Step::Free { id } => {
                if let Some(block) = live.remove(id) {
                    heap.deallocate(block, Stream(0), now_ns);
                }
            }
        }
    }
    for (_, block) in live {
        heap.deallocate(block, Stream(0), trace.steps.len() as u64);
    }
    Ok(())
}

impl Device {
    /// The device of a driver as it is now, without what we hold.
    pub fn now(driver: &dyn Driver) -> Device {
        let figures = driver.figures();
        Device { capacity: figures.total, others: figures.others }
    }
}
