//! What was in a trace: its peak, who held what there, its segments and holes.

use crate::held::Held;
use crate::live::{Block, Live};
use crate::record::Kind;
use crate::snapshot::{settings_of, torch_event};
use crate::trace::{Format, Segment, Trace};
use std::collections::HashMap;
use std::io;
use vramlab_memory::caching::SegmentImage;
use vramlab_memory::trace::torch::{Prediction, Predictor, Undoing};
use vramlab_picture::Samples;

/// Into how many pieces a timeline is divided: more than are seen at once, for a closer look.
const PIECES: usize = 2000;

/// How many marks a timeline has at most.
const MARKS: usize = 200;

/// Who held how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Bytes asked for.
    pub bytes: u64,
    /// In how many blocks.
    pub blocks: u64,
    /// The stack, the innermost line first; empty where nobody said.
    pub lines: Vec<String>,
}

/// A block of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where it begins.
    pub address: u64,
    /// Bytes held for it.
    pub bytes: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Whose, as a number in the trace's owners.
    pub owner: u32,
}

/// One segment at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentView {
    /// Where it begins.
    pub base: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes in blocks.
    pub in_use: u64,
    /// Its largest hole in bytes.
    pub largest_free: u64,
    /// Its blocks, by address.
    pub blocks: Vec<Placed>,
}

/// A moment of a trace.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Number of the event after which it is, from 1; 0 before the first.
    pub event: u64,
    /// Nanoseconds of the trace's clock.
    pub time_ns: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes held from the driver, where the trace says so.
    pub reserved: u64,
    /// Blocks that were out.
    pub blocks: u64,
    /// The segments.
    pub segments: Vec<SegmentView>,
    /// The part of the free bytes outside the largest hole; `None` where segments are not told.
    pub fragmentation: Option<f64>,
    /// Who held what, largest first.
    pub owners: Vec<Owned>,
}

impl Moment {
    /// The segments, those with most free bytes first.
    pub fn by_free(&self) -> Vec<&SegmentView> {
        let mut segments: Vec<&SegmentView> = self.segments.iter().collect();
        segments.sort_by_key(|s| (std::cmp::Reverse(s.bytes - s.in_use), s.base));
        segments
    }
}

/// What was in a trace.
#[derive(Clone, Debug)]
pub struct View {
    /// The file.
    pub file: String,
    /// What kind it was.
    pub format: Format,
    /// The device within the file.
    pub device: u64,
    /// The device in words.
    pub device_name: Option<String>,
    /// Its size, where the file says so.
    pub capacity: Option<u64>,
    /// The settings of the recording program, where the file says so.
    pub settings: Option<String>,
    /// How many events.
    pub events: u64,
    /// How many blocks were handed out.
    pub allocs: u64,
    /// How many came back.
    pub frees: u64,
    /// Requests that failed, the first one as its event and its bytes.
    pub ooms: u64,
    /// See [`View::ooms`].
    pub first_oom: Option<(u64, u64)>,
    /// Blocks that were out when it began.
    pub start_blocks: u64,
    /// Bytes of them.
    pub start_bytes: u64,
    /// When the first and the last event were.
    pub time_ns: (u64, u64),
    /// The moment of the most bytes asked for.
    pub peak: Moment,
    /// The end.
    pub end: Moment,
    /// The most bytes held from the driver.
    pub peak_reserved: u64,
    /// Bytes asked for, over the events.
    pub requested: Samples,
    /// Bytes held from the driver, over the events.
    pub reserved: Samples,
    /// The events where cells or scopes began or ended, or modes changed, with their names: the first of them.
    pub marks: Vec<(u64, String)>,
    /// How well PyTorch's rules predict each address, for a snapshot.
    pub prediction: Option<Prediction>,
    /// What the reader had to say.
    pub notes: Vec<String>,
}

/// Looks through a trace: once for its peak, once more for the state there.
///
/// # Errors
/// The temporary file cannot be read.
pub fn view(trace: &Trace) -> io::Result<View> {
    let mut view = course(trace)?;
    states(trace, &mut view)?;
    view.prediction = prediction(trace)?;
    Ok(view)
}

/// The state that a trace begins with.
fn beginning(trace: &Trace) -> (Live, Held) {
    let (mut live, mut held) = (Live::default(), Held::default());
    trace.start.iter().for_each(|block| live.take(block));
    trace.start_segments.iter().for_each(|segment| held.add(segment.base, segment.bytes));
    (live, held)
}

fn course(trace: &Trace) -> io::Result<View> {
    let (mut live, mut held) = beginning(trace);
    let count = trace.events.len();
    let mut view = View {
        file: trace.file.clone(),
        format: trace.format,
        device: trace.device,
        device_name: trace.device_name.clone(),
        capacity: trace.capacity,
        settings: trace.settings.clone(),
        events: count,
        allocs: 0,
        frees: 0,
        ooms: 0,
        first_oom: None,
        start_blocks: trace.start.len() as u64,
        start_bytes: live.requested(),
        time_ns: (0, 0),
        peak: Moment { requested: live.requested(), ..Moment::default() },
        end: Moment { event: count, ..Moment::default() },
        peak_reserved: held.bytes(),
        requested: Samples::new(PIECES),
        reserved: Samples::new(PIECES),
        marks: Vec::new(),
        prediction: None,
        notes: trace.notes.clone(),
    };
    view.requested.push(0, live.requested());
    view.reserved.push(0, held.bytes());
    trace.events.each(|index, record| {
        live.take(record);
        held.take(record);
        let (now, reserved) = (live.requested(), held.bytes());
        match record.kind {
            Kind::Alloc => view.allocs += 1,
            Kind::Free => view.frees += 1,
            Kind::Oom => {
                view.ooms += 1;
                view.first_oom.get_or_insert((index + 1, record.bytes));
            }
            Kind::Mark if record.owner != 0 && view.marks.len() < MARKS => {
                view.marks.push((index + 1, trace.owners.label(record.owner)));
            }
            _ => {}
        }
        if index == 0 {
            view.time_ns.0 = record.time_ns;
        }
        view.time_ns.1 = record.time_ns;
        if now > view.peak.requested {
            view.peak = Moment {
                event: index + 1,
                time_ns: record.time_ns,
                requested: now,
                ..Moment::default()
            };
        }
        view.peak_reserved = view.peak_reserved.max(reserved);
        view.requested.push(index + 1, now);
        view.reserved.push(index + 1, reserved);
        true
    })?;
    Ok(view)
}

fn states(trace: &Trace, view: &mut View) -> io::Result<()> {
    let (mut live, mut held) = beginning(trace);
    if view.peak.event == 0 {
        fill(trace, &mut view.peak, &live, &held);
    }
    trace.events.each(|index, record| {
        live.take(record);
        held.take(record);
        if index + 1 == view.peak.event {
            fill(trace, &mut view.peak, &live, &held);
        }
        view.end.time_ns = record.time_ns;
        true
    })?;
    view.end.requested = live.requested();
    fill(trace, &mut view.end, &live, &held);
    Ok(())
}

fn fill(trace: &Trace, moment: &mut Moment, live: &Live, held: &Held) {
    moment.reserved = held.bytes();
    moment.blocks = live.count() as u64;
    moment.segments = segments(held.segments(), live);
    moment.owners = owners(trace, live);
    let bytes = |of: fn(&SegmentView) -> u64| moment.segments.iter().map(of).sum::<u64>();
    let free = bytes(|segment| segment.bytes - segment.in_use);
    let largest = moment.segments.iter().map(|segment| segment.largest_free).max();
    moment.fragmentation = largest.map(|largest| match free {
        0 => 0.0,
        free => (free - largest.min(free)) as f64 / free as f64,
    });
}

fn owners(trace: &Trace, live: &Live) -> Vec<Owned> {
    let mut sums: HashMap<u32, (u64, u64)> = HashMap::new();
    for block in live.blocks() {
        let (bytes, blocks) = sums.entry(block.owner).or_default();
        *bytes = bytes.saturating_add(block.bytes);
        *blocks += 1;
    }
    let mut sums: Vec<(u32, (u64, u64))> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(owner, (bytes, _))| (std::cmp::Reverse(*bytes), *owner));
    let owned = |(owner, (bytes, blocks)): (u32, (u64, u64))| Owned {
        bytes,
        blocks,
        lines: trace.owners.lines(owner),
    };
    sums.into_iter().map(owned).collect()
}

/// Each segment with the blocks that lie in it. What a block is held beyond its request is taken from the trace where
/// it says so.
fn segments(segments: Vec<Segment>, live: &Live) -> Vec<SegmentView> {
    let mut blocks: Vec<&Block> = live.blocks().filter(|block| block.held > 0).collect();
    blocks.sort_unstable_by_key(|block| block.address);
    let mut next = blocks.into_iter().peekable();
    let mut all = Vec::with_capacity(segments.len());
    for Segment { base, bytes } in segments {
        let mut segment =
            SegmentView { base, bytes, in_use: 0, largest_free: 0, blocks: Vec::new() };
        let end = base + bytes;
        let mut reached = base;
        while next.next_if(|block| block.address < base).is_some() {}
        while let Some(block) = next.next_if(|block| block.address < end) {
            let from = block.address.max(reached);
            let to = block.address.saturating_add(block.held).min(end);
            if to <= from {
                continue;
            }
            segment.largest_free = segment.largest_free.max(from - reached);
            segment.in_use += to - from;
            segment.blocks.push(Placed {
                address: from,
                bytes: to - from,
                requested: block.bytes,
                owner: block.owner,
            });
            reached = to;
        }
        segment.largest_free = segment.largest_free.max(end - reached);
        all.push(segment);
    }
    all
}

/// PyTorch's rules on a snapshot, each address compared.
fn prediction(trace: &Trace) -> io::Result<Option<Prediction>> {
    let whole = trace.format == Format::Torch && !trace.end.is_empty() && !trace.cut;
    let expandable = trace.end.iter().any(|segment| segment.expandable);
    if !whole || expandable || trace.events.is_empty() {
        return Ok(None);
    }
    let options = settings_of(trace);
    let mut undoing = Undoing::new(&trace.end);
    trace.events.each_back(|_, record| undoing.undo(&torch_event(record), &options))?;
    let images: Vec<SegmentImage> = undoing.segments();
    let mut predictor = Predictor::new(options, &images);
    trace.events.each(|_, record| {
        predictor.step(&torch_event(record));
        true
    })?;
    Ok(Some(predictor.found))
}
