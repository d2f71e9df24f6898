//! PyTorch memory snapshots (`torch.cuda.memory._dump_snapshot`): the state at their start, their steps, and a check
//! that our rules put every block where the real allocator put it.

use super::pickle::{Pickle, PickleError, ValueId};
use crate::caching::{Caching, CachingOptions, Divisions, SegmentImage};
use crate::replay::{Step, Trace};
use crate::{
    Block, Driver, DriverFigures, MIB, MemoryResource, Refusal, RefusalCause, Region, Stream,
    VirtualMemory,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

/// What one recorded event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A block was handed out; the size is what was asked for.
    Alloc,
    /// Its owner gave it back; a stream may still use it.
    FreeRequested,
    /// It can be used again.
    FreeCompleted,
    /// The driver gave a segment.
    SegmentAlloc,
    /// A segment went back to the driver.
    SegmentFree,
    /// Memory was mapped into an expandable segment.
    SegmentMap,
    /// Memory was unmapped from an expandable segment.
    SegmentUnmap,
    /// A request failed.
    Oom,
    /// Anything else.
    Other,
}

/// One recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorchEvent {
    /// What it was.
    pub action: Action,
    /// Where; what was free on the device, for a failure.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// The stream, as the recording program names it.
    pub stream: u64,
    /// When, in microseconds.
    pub time_us: u64,
}

/// One block of a segment at the end of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorchBlock {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// What was asked for it.
    pub requested: u64,
    /// Whether it is out, or given back and still in use by a stream.
    pub used: bool,
}

/// One segment at the end of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchSegment {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its stream.
    pub stream: u64,
    /// Whether it serves requests of at most 1 MiB.
    pub small: bool,
    /// Whether it grows in place.
    pub expandable: bool,
    /// Its blocks, by address.
    pub blocks: Vec<TorchBlock>,
}

/// What a snapshot holds of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchDevice {
    /// The device's number.
    pub device: u64,
    /// The segments at the end.
    pub segments: Vec<TorchSegment>,
    /// The events, oldest first.
    pub events: Vec<TorchEvent>,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the recording program, where it is told.
    pub conf: String,
}

/// Why a file is not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// It is not a pickle of data.
    Pickle(PickleError),
    /// It is a pickle of something else.
    NotASnapshot {
        /// What is missing or odd.
        what: &'static str,
    },
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Pickle(error) => write!(f, "{error}"),
            SnapshotError::NotASnapshot { what } => {
                write!(f, "a pickle, but not a PyTorch memory snapshot: {what}")
            }
        }
    }
}

impl std::error::Error for SnapshotError {}

/// Reads a snapshot: one entry for each device that has events or segments.
pub fn read(bytes: &[u8]) -> Result<Vec<TorchDevice>, SnapshotError> {
    let pickle = Pickle::read(bytes).map_err(SnapshotError::Pickle)?;
    let root = pickle.root();
    let missing = |what| SnapshotError::NotASnapshot { what };
    let segments = pickle.get(root, "segments").ok_or(missing("it has no segments"))?;
    let traces = pickle.get(root, "device_traces");
    let conf = pickle
        .get(root, "allocator_settings")
        .and_then(|settings| pickle.get(settings, "PYTORCH_CUDA_ALLOC_CONF"))
        .and_then(|conf| pickle.text(conf))
        .unwrap_or_default();
    let mut devices: BTreeMap<u64, TorchDevice> = BTreeMap::new();
    let mut device = |device: u64, change: &mut dyn FnMut(&mut TorchDevice)| {
        let conf = conf.to_string();
        let empty = TorchDevice { device, segments: Vec::new(), events: Vec::new(), conf };
        change(devices.entry(device).or_insert(empty));
    };
    for id in pickle.items(segments) {
        let segment = read_segment(&pickle, *id).ok_or(missing("a segment lacks its size"))?;
        let number = number(&pickle, *id, "device").unwrap_or(0);
        let mut segment = Some(segment);
        device(number, &mut |device| device.segments.extend(segment.take()));
    }
    for (index, trace) in traces.map_or(&[][..], |traces| pickle.items(traces)).iter().enumerate() {
        let events: Option<Vec<TorchEvent>> =
            pickle.items(*trace).iter().map(|id| read_event(&pickle, *id)).collect();
        let events = events.ok_or(missing("an event lacks its address or size"))?;
        if !events.is_empty() {
            device(index as u64, &mut |device| device.events.clone_from(&events));
        }
    }
    Ok(devices.into_values().collect())
}

fn number(pickle: &Pickle<'_>, id: ValueId, key: &str) -> Option<u64> {
    pickle.get(id, key).and_then(|value| pickle.unsigned(value))
}

fn read_segment(pickle: &Pickle<'_>, id: ValueId) -> Option<TorchSegment> {
    let address = number(pickle, id, "address")?;
    let flag = |key| number(pickle, id, key).unwrap_or(0);
    let kind = pickle.get(id, "segment_type").and_then(|kind| pickle.text(kind));
    let mut blocks = Vec::new();
    let mut next = address;
    for block in pickle.get(id, "blocks").map_or(&[][..], |blocks| pickle.items(blocks)) {
        // Older snapshots leave the address of a block to be counted up.
        let at = number(pickle, *block, "address").unwrap_or(next);
        let bytes = number(pickle, *block, "size")?;
        let requested = number(pickle, *block, "requested_size").unwrap_or(bytes);
        let state = pickle.get(*block, "state").and_then(|state| pickle.text(state));
        let used = state.is_some_and(|state| state.starts_with("active"));
        blocks.push(TorchBlock { address: at, bytes, requested, used });
        next = at.checked_add(bytes)?;
    }
    let bytes = number(pickle, id, "total_size")?;
    address.checked_add(bytes)?;
    Some(TorchSegment {
        address,
        bytes,
        stream: flag("stream"),
        small: kind == Some("small"),
        expandable: flag("is_expandable") == 1,
        blocks,
    })
}

fn read_event(pickle: &Pickle<'_>, id: ValueId) -> Option<TorchEvent> {
    let action = match pickle.get(id, "action").and_then(|action| pickle.text(action))? {
        "alloc" => Action::Alloc,
        "free_requested" => Action::FreeRequested,
        "free_completed" | "free" => Action::FreeCompleted,
        "segment_alloc" => Action::SegmentAlloc,
        "segment_free" => Action::SegmentFree,
        "segment_map" => Action::SegmentMap,
        "segment_unmap" => Action::SegmentUnmap,
        "oom" => Action::Oom,
        _ => Action::Other,
    };
    let or_zero =
        |value: Option<u64>| if action == Action::Other { value.or(Some(0)) } else { value };
    let address = match action {
        Action::Oom => number(pickle, id, "device_free").or(Some(0)),
        _ => number(pickle, id, "addr"),
    };
    let (address, bytes) = (or_zero(address)?, or_zero(number(pickle, id, "size"))?);
    address.checked_add(bytes)?;
    Some(TorchEvent {
        action,
        address,
        bytes,
        stream: number(pickle, id, "stream").unwrap_or(0),
        time_us: number(pickle, id, "time_us").unwrap_or(0),
    })
}

/// Streams are pointers in a recording; here they are numbers that differ where the pointers do.
pub fn stream_of(pointer: u64) -> Stream {
    Stream((pointer ^ (pointer >> 32)) as u32)
}

/// A block in the state at the start: its size, and what was asked for.
type Blocks = BTreeMap<u64, (u64, u64)>;

/// The segments when the recording began, found by undoing the events from the end; blocks that were out lie in them.
pub fn state_at_start(device: &TorchDevice, options: &CachingOptions) -> Vec<SegmentImage> {
    let mut undoing = Undoing::new(&device.segments);
    device.events.iter().rev().for_each(|event| undoing.undo(event, options));
    undoing.segments()
}

/// The state of a recording, undone event by event from its end. Holds the blocks that are out and nothing else, so
/// that the events may be streamed, the last one first.
pub struct Undoing {
    segments: BTreeMap<u64, (u64, u64, bool)>,
    exact: Blocks,
    /// Sizes from events are what was asked for, or the block's: rounded, they are at most the block's.
    rounded: Blocks,
}

impl Undoing {
    /// Begins at the state at the end.
    pub fn new(at_end: &[TorchSegment]) -> Undoing {
        let mut segments = BTreeMap::new();
        let mut exact: Blocks = BTreeMap::new();
        for segment in at_end {
            segments.insert(segment.address, (segment.bytes, segment.stream, segment.small));
            let used = segment.blocks.iter().filter(|block| block.used);
            exact.extend(used.map(|block| (block.address, (block.bytes, block.requested))));
        }
        Undoing { segments, exact, rounded: BTreeMap::new() }
    }

    /// Undoes one event.
    pub fn undo(&mut self, event: &TorchEvent, options: &CachingOptions) {
        match event.action {
            Action::Alloc => {
                self.exact.remove(&event.address);
                self.rounded.remove(&event.address);
            }
            Action::FreeCompleted => {
                let bytes = options.rounded(event.bytes.max(1));
                self.rounded.insert(event.address, (bytes, event.bytes));
            }
            Action::SegmentAlloc => {
                self.segments.remove(&event.address);
            }
            Action::SegmentFree => {
                let small = event.bytes == 2 * MIB;
                self.segments.insert(event.address, (event.bytes, event.stream, small));
            }
            _ => {}
        }
    }

    /// Address, size and requested size of each block that is out, by address, wherever it lies.
    pub fn blocks(&self) -> Vec<(u64, u64, u64)> {
        let mut all = self.rounded.clone();
        all.extend(self.exact.iter().map(|(at, sizes)| (*at, *sizes)));
        all.into_iter().map(|(at, (bytes, asked))| (at, bytes, asked)).collect()
    }

    /// The segments, with the blocks that are out in them.
    pub fn segments(&self) -> Vec<SegmentImage> {
        let of =
            |exact: bool| move |(at, sizes): (&u64, &(u64, u64))| (*at, (sizes.0, sizes.1, exact));
        let mut used: BTreeMap<u64, (u64, u64, bool)> =
            self.rounded.iter().map(of(false)).collect();
        used.extend(self.exact.iter().map(of(true)));
        let image = |(base, (bytes, stream, small)): (&u64, &(u64, u64, bool))| SegmentImage {
            base: *base,
            bytes: *bytes,
            stream: stream_of(*stream),
            small: *small,
            used: blocks_within(&used, *base, *bytes, *small),
        };
        self.segments.iter().map(image).collect()
    }
}

/// The blocks of a segment, each with what could not have been split off behind it.
fn blocks_within(
    used: &BTreeMap<u64, (u64, u64, bool)>,
    base: u64,
    bytes: u64,
    small: bool,
) -> Vec<(u64, u64, u64)> {
    let end = base + bytes;
    let mut all = Vec::new();
    let mut from = base;
    for (at, (size, asked, exact)) in used.range(base..end) {
        if *at < from {
            // An event of another pool at a reused address: no block of this state.
            continue;
        }
        let next = used.range(at + 1..end).next().map_or(end, |(next, _)| *next);
        let room = next - at;
        let too_small_to_split = if small { 512 } else { MIB + 1 };
        let grows = !exact && room.saturating_sub(*size) < too_small_to_split;
        let size = if grows { room } else { (*size).min(room) };
        all.push((*at, size, *asked));
        from = at + size;
    }
    all
}

/// How well our rules predict where each block of a recording lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// Blocks that were handed out.
    pub allocs: u64,
    /// Those that lie where the rules put them.
    pub right: u64,
    /// Index of the first event that went otherwise.
    pub first_wrong: Option<usize>,
    /// Segments that were made when the rules make one, with the size they give.
    pub segments_right: u64,
    /// Segments in the recording.
    pub segments: u64,
    /// Blocks that came back without having been handed out.
    pub strays: u64,
}

/// Replays a recording through our rules, with the addresses of new segments taken from it.
pub fn predict(device: &TorchDevice, options: CachingOptions) -> Prediction {
    let mut predictor = Predictor::new(options, &state_at_start(device, &options));
    device.events.iter().for_each(|event| predictor.step(event));
    predictor.found
}

/// A prediction in progress: events in, first one first.
pub struct Predictor {
    cache: Caching,
    live: HashMap<u64, Block>,
    driver: Recorded,
    released: VecDeque<u64>,
    index: usize,
    /// What came of it so far.
    pub found: Prediction,
}

impl Predictor {
    /// Begins with the segments and blocks of a state.
    pub fn new(options: CachingOptions, state: &[SegmentImage]) -> Predictor {
        let (cache, blocks) = Caching::restore(options, state);
        Predictor {
            cache,
            live: blocks.into_iter().map(|block| (block.address(), block)).collect(),
            driver: Recorded::default(),
            released: VecDeque::new(),
            index: 0,
            found: Prediction::default(),
        }
    }

    /// The allocator as it stands.
    pub fn cache(&self) -> &Caching {
        &self.cache
    }

    /// Takes the next event.
    pub fn step(&mut self, event: &TorchEvent) {
        let right = match event.action {
            Action::SegmentAlloc => {
                self.found.segments += 1;
                self.driver.next.push_back((event.address, event.bytes));
                true
            }
            Action::SegmentFree => self.segment_goes(event.address),
            Action::Alloc => self.alloc(event),
            Action::FreeCompleted => self.free(event.address),
            _ => true,
        };
        if !right && self.found.first_wrong.is_none() {
            self.found.first_wrong = Some(self.index);
        }
        self.index += 1;
    }

    fn segment_goes(&mut self, address: u64) -> bool {
        // A run of them is one return of everything that is whole.
        if self.released.is_empty() {
            self.cache.trim(&mut self.driver);
            self.released.extend(self.driver.released.drain(..));
        }
        let at = self.released.iter().position(|base| *base == address);
        at.and_then(|at| self.released.remove(at)).is_some()
    }

    fn alloc(&mut self, event: &TorchEvent) -> bool {
        self.found.allocs += 1;
        let made = self.driver.next.len() as u64;
        let stream = stream_of(event.stream);
        let block = self.cache.allocate(event.bytes, stream, &mut self.driver);
        self.found.segments_right += made - self.driver.next.len() as u64;
        let right = block.is_ok_and(|block| {
            let right = block.address() == event.address && self.driver.next.is_empty();
            self.live.insert(event.address, block);
            right
        });
        self.driver.next.clear();
        self.found.right += u64::from(right);
        right
    }

    fn free(&mut self, address: u64) -> bool {
        let Some(block) = self.live.remove(&address) else {
            self.found.strays += 1;
            return false;
        };
        self.cache.deallocate(block, Stream(0), &mut self.driver);
        true
    }
}

/// The settings that the recording program ran with, as far as they are told.
pub fn options_of(device: &TorchDevice) -> CachingOptions {
    options_from(&device.conf)
}

/// The settings in a `PYTORCH_CUDA_ALLOC_CONF`, as far as they are told.
pub fn options_from(conf: &str) -> CachingOptions {
    // The size of the device is not told, and no decision that succeeded depended on it.
    let mut options = CachingOptions::of(1 << 50);
    for (name, value) in crate::modes::torch_pairs(conf) {
        match name.as_str() {
            "max_split_size_mb" => {
                options.max_split =
                    value.parse::<u64>().map_or(u64::MAX, |mib| mib.saturating_mul(MIB));
            }
            "roundup_power2_divisions" => {
                options.divisions = Divisions::parse(&value).unwrap_or(Divisions::NONE);
            }
            _ => {}
        }
    }
    options
}

/// The steps of a recording for a replay through any mode, with the blocks that were out at its start before them.
pub fn trace(device: &TorchDevice) -> Trace {
    let images = state_at_start(device, &options_of(device));
    let mut names: HashMap<u64, u64> = HashMap::new();
    let mut steps = Vec::new();
    let mut next = 0;
    let mut begin = |names: &mut HashMap<u64, u64>, steps: &mut Vec<Step>, at: u64, bytes: u64| {
        next += 1;
        names.insert(at, next);
        steps.push(Step::Alloc { id: next, bytes });
    };
    for (at, _, asked) in images.iter().flat_map(|image| &image.used) {
        begin(&mut names, &mut steps, *at, *asked);
    }
    let start = steps.len();
    for event in &device.events {
        match event.action {
            Action::Alloc => begin(&mut names, &mut steps, event.address, event.bytes),
            Action::FreeCompleted => {
                let id = names.remove(&event.address);
                steps.extend(id.map(|id| Step::Free { id }));
            }
            _ => {}
        }
    }
    Trace { steps, start, from_event: 0 }
}

/// A driver that gives the segments of a recording, in order, and refuses a size that was not recorded.
#[derive(Default)]
struct Recorded {
    next: VecDeque<(u64, u64)>,
    released: Vec<u64>,
}

impl Driver for Recorded {
    fn obtain(&mut self, bytes: u64) -> Result<Region, Refusal> {
        match self.next.front() {
            Some((base, recorded)) if *recorded == bytes => {
                let region = Region::new(*base, bytes, 0);
                self.next.pop_front();
                Ok(region)
            }
            _ => Err(Refusal { asked: bytes, free: 0, cause: RefusalCause::Exhausted }),
        }
    }

    fn release(&mut self, region: Region) {
        self.released.push(region.base());
    }

    fn figures(&self) -> DriverFigures {
        DriverFigures { total: 1 << 50, granularity: 1, ..DriverFigures::default() }
    }

    fn describe(&self) -> String {
        "a recording".to_string()
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        None
    }
}
