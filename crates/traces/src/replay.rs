//! A trace through modes: the allocators are `memory`'s own, the events come from the file's records.

use crate::record::Kind;
use crate::trace::{Format, Trace};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use vramlab_memory::modes::{ModeName, OptionValue};
use vramlab_memory::replay::{Device, Outcome, Replay, Search, Smallest, Step};
use vramlab_memory::{GIB, MIB, ModeSpec, Stream};

/// How many steps the search for the smallest device may run for each mode, unless it shall be exact.
const SEARCH_STEPS: u64 = 8_000_000;

/// How many runs it may take at least, where no size is known to pass.
const LEAST_RUNS: u32 = 8;

/// Sizes of devices that are made, in GiB, for a trace that does not say where it was recorded.
const DEVICES: [u64; 14] = [4, 6, 8, 12, 16, 24, 32, 40, 48, 80, 96, 141, 192, 288];

/// No device is larger: 4 PiB.
pub const LARGEST_DEVICE: u64 = 1 << 52;

/// What is asked of a replay.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The modes, in the order of the table.
    pub modes: Vec<ModeSpec>,
    /// Size of the device in bytes, at most [`LARGEST_DEVICE`]; `None` takes the recorded one, or one that is large enough.
    pub capacity: Option<u64>,
    /// Whether the smallest device is searched to the MiB however long the trace is.
    pub exact: bool,
}

/// The first request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Number of the event, from 1; 0 for a block that was out before the first.
    pub event: u64,
    /// Bytes asked for.
    pub asked: u64,
    /// Why, in a word.
    pub verdict: String,
    /// The figures.
    pub facts: String,
}

/// What came of a trace in one mode.
#[derive(Clone, Debug)]
pub struct Row {
    /// What came of it.
    pub outcome: Outcome,
    /// The first failure, where the run stopped.
    pub failure: Option<Failure>,
    /// The smallest device that passes.
    pub smallest: Option<Smallest>,
}

/// Where the size of the device comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeFrom {
    /// The caller.
    Asked,
    /// The trace.
    Recorded,
    /// Neither: the smallest device that is made and holds the peak within the usual fraction.
    Assumed,
}

/// A trace in several modes.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The file.
    pub file: String,
    /// What kind it was.
    pub format: Format,
    /// The device within the file.
    pub device: u64,
    /// How many events there are.
    pub events: u64,
    /// How many blocks were out when it began.
    pub start_blocks: u64,
    /// The most bytes asked for at once.
    pub peak_requested: u64,
    /// Size of the device in bytes.
    pub capacity: u64,
    /// Who said so.
    pub size_from: SizeFrom,
    /// One row a mode.
    pub rows: Vec<Row>,
    /// What the reader had to say.
    pub notes: Vec<String>,
}

/// Replays a trace in each mode; modes run side by side where there are cores.
///
/// # Errors
/// The temporary file cannot be read.
pub fn replay(trace: &Trace, ask: &Ask) -> io::Result<Replayed> {
    let (capacity, size_from) = match (ask.capacity, trace.capacity) {
        (Some(asked), _) => (asked, SizeFrom::Asked),
        (None, Some(recorded)) if recorded <= LARGEST_DEVICE => (recorded, SizeFrom::Recorded),
        (None, _) => (large_enough(trace.peak_requested), SizeFrom::Assumed),
    };
    let capacity = capacity.min(LARGEST_DEVICE);
    let mut rows = Vec::new();
    for row in side_by_side(ask.modes.len(), |at| row(trace, &ask.modes[at], capacity, ask.exact)) {
        rows.push(row?);
    }
    Ok(Replayed {
        file: trace.file.clone(),
        format: trace.format,
        device: trace.device,
        events: trace.events.len(),
        start_blocks: trace.start.len() as u64,
        peak_requested: trace.peak_requested,
        capacity,
        size_from,
        rows,
        notes: trace.notes.clone(),
    })
}

fn large_enough(peak: u64) -> u64 {
    let wanted = (peak as f64 / 0.75) as u64;
    let size = DEVICES.iter().map(|gib| gib * GIB).find(|size| *size >= wanted);
    size.unwrap_or_else(|| wanted.checked_next_power_of_two().unwrap_or(LARGEST_DEVICE))
}

/// Runs `count` jobs on as many threads as there are cores; results in order.
fn side_by_side<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            let result = job(at);
            done.lock().unwrap_or_else(|broken| broken.into_inner()).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..cores.min(count) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(|broken| broken.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn row(trace: &Trace, mode: &ModeSpec, capacity: u64, exact: bool) -> io::Result<Row> {
    let (outcome, event) = run(trace, mode, capacity)?;
    let failure = outcome.failure.as_ref().map(|failure| Failure {
        event,
        asked: failure.asked,
        verdict: failure.verdict.to_string(),
        facts: failure.error.to_string(),
    });
    let smallest = smallest(trace, mode, &outcome, exact)?;
    Ok(Row { outcome, failure, smallest })
}

/// One run, and the number of the event where it failed.
fn run(trace: &Trace, mode: &ModeSpec, capacity: u64) -> io::Result<(Outcome, u64)> {
    let mut replay = Replay::new(mode, Device::of(capacity));
    for block in &trace.start {
        let step = Step::Alloc { id: block.name, bytes: block.bytes };
        if !replay.step_on(step, Stream(block.stream)) {
            return Ok((replay.outcome(), 0));
        }
    }
    let mut event = 0;
    trace.events.each(|index, record| {
        event = index + 1;
        let stream = Stream(record.stream);
        match record.kind {
            Kind::Alloc => {
                replay.step_on(Step::Alloc { id: record.name, bytes: record.bytes }, stream)
            }
            Kind::Free => replay.step_on(Step::Free { id: record.name }, stream),
            // What failed there is asked again; what the program would have done with it is not known, so it goes.
            Kind::Oom => {
                let id = u64::MAX;
                replay.step_on(Step::Alloc { id, bytes: record.bytes }, stream)
                    && replay.step_on(Step::Free { id }, stream)
            }
            _ => true,
        }
    })?;
    Ok((replay.outcome(), event))
}

/// Whether the pool of a mode does the same under every limit that it does not reach.
fn grows_alike(mode: &ModeSpec) -> bool {
    let collects = mode.value("garbage_collection_threshold");
    let collects = collects.is_some_and(|value| value != OptionValue::Threshold(0.0));
    mode.mode() != ModeName::Preallocate && !collects
}

fn smallest(
    trace: &Trace,
    mode: &ModeSpec,
    outcome: &Outcome,
    exact: bool,
) -> io::Result<Option<Smallest>> {
    let most = outcome.device.capacity.max(trace.peak_requested).max(GIB).saturating_mul(64);
    let most = most.min(LARGEST_DEVICE);
    let steps = trace.events.len() + trace.start.len() as u64;
    let runs = if exact { 64 } else { (SEARCH_STEPS / steps.max(1)).min(64) as u32 };
    let grows = grows_alike(mode);
    let known = match outcome.passes() {
        true => Some(outcome.device.capacity),
        false => None,
    };
    // A pool that grows never comes to a limit which it never reaches: what it held at most is enough.
    let whole = match (grows, outcome.passes()) {
        (false, _) => None,
        (true, true) => Some(outcome.clone()),
        (true, false) => Some(run(trace, mode, most)?.0),
    };
    let held = whole.filter(Outcome::passes).map(|whole| {
        let pool = (whole.peak_pool as f64 / mode.fraction().unwrap_or(1.0)).ceil() as u64;
        pool.div_ceil(MIB).max(1) * MIB
    });
    let known = known.into_iter().chain(held).min();
    // Without a size that is known to pass, some runs are due however long the trace is.
    let runs = if known.is_none() { runs.max(LEAST_RUNS) } else { runs };
    let search = Search { peak_requested: trace.peak_requested, granule: MIB, most, known, runs };
    let mut broken = None;
    let found = search.smallest(mode, |bytes| match run(trace, mode, bytes) {
        Ok((outcome, _)) => outcome.passes(),
        Err(error) => {
            broken = Some(error);
            true
        }
    });
    match broken {
        Some(error) => Err(error),
        None => Ok(found),
    }
}
