//! Reads a PyTorch memory snapshot as a stream: events go out as soon as they are whole, and only what the end needs
//! stays (segments and their blocks, distinct stacks, what the pickle refers to again).

use crate::held::Held;
use crate::live::Live;
use crate::open::Failed;
use crate::own::strays;
use crate::pickle::fetched;
use crate::reading::Reading;
use crate::record::{Kind, Record};
use crate::trace::{Events, Format, Trace};
use crate::values::{Contents, Machine};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use vramlab_memory::CachingOptions;
use vramlab_memory::trace::torch::{Action, TorchEvent, TorchSegment, Undoing, options_from};

/// Reads a snapshot: one trace for each device.
pub(crate) fn read(file: &str, path: &Path) -> Result<Vec<Trace>, Failed> {
    let fetched = fetched(Reading::open(path)?)?;
    let contents = Machine::new(Reading::open(path)?, fetched).run()?;
    traces(file, contents)
}

/// An event as the rules of PyTorch's allocator see it.
pub(crate) fn torch_event(record: &Record) -> TorchEvent {
    TorchEvent {
        action: match record.kind {
            Kind::Alloc => Action::Alloc,
            Kind::Free => Action::FreeCompleted,
            Kind::FreeRequested => Action::FreeRequested,
            Kind::Grow => Action::SegmentAlloc,
            Kind::Release => Action::SegmentFree,
            Kind::Map => Action::SegmentMap,
            Kind::Unmap => Action::SegmentUnmap,
            Kind::Oom => Action::Oom,
            _ => Action::Other,
        },
        address: record.address,
        bytes: record.bytes,
        stream: u64::from(record.stream),
        time_us: record.time_ns / 1000,
    }
}

/// One device's part of a snapshot.
#[derive(Default)]
struct Device {
    segments: Vec<TorchSegment>,
    /// Who made the blocks that are out at the end.
    owners: HashMap<u64, u32>,
    events: Option<std::ops::Range<u64>>,
}

fn traces(file: &str, contents: Contents) -> Result<Vec<Trace>, Failed> {
    let Contents { segments, devices: lists, conf, spool, owners, cut, .. } = contents;
    let mut devices: BTreeMap<u64, Device> = BTreeMap::new();
    for (device, segment, makers) in segments {
        let device = devices.entry(device).or_default();
        let used = segment.blocks.iter().zip(makers).filter(|(block, _)| block.used);
        device.owners.extend(used.map(|(block, maker)| (block.address, maker)));
        device.segments.push(segment);
    }
    for (device, range) in lists {
        devices.entry(device).or_default().events = Some(range);
    }
    let (spool, mut owners) = (Arc::new(spool.finish()), owners);
    let before = owners.named("before the recording began");
    let owners = Arc::new(owners);
    if devices.is_empty() {
        return Err(Failed::Unknown {
            what: "a PyTorch memory snapshot without events or memory".into(),
        });
    }
    let mut all = Vec::new();
    for (number, device) in devices {
        let mut trace = Trace {
            file: file.to_string(),
            format: Format::Torch,
            device: number,
            device_name: None,
            capacity: None,
            settings: Some(conf.clone()).filter(|conf| !conf.is_empty()),
            start: Vec::new(),
            start_segments: Vec::new(),
            end: device.segments,
            cut,
            events: Events { spool: spool.clone(), range: device.events.unwrap_or(0..0) },
            owners: owners.clone(),
            skipped: 0,
            peak_requested: 0,
            notes: contents.notes.clone(),
        };
        match cut {
            true => start_from_frees(&mut trace, before)?,
            false => start_by_undoing(&mut trace, device.owners, before)?,
        }
        fold(&mut trace)?;
        all.push(trace);
    }
    Ok(all)
}

/// The state at the start: what is out at the end, with every event undone.
fn start_by_undoing(
    trace: &mut Trace,
    mut makers: HashMap<u64, u32>,
    before: u32,
) -> Result<(), Failed> {
    let options = settings_of(trace);
    let mut undoing = Undoing::new(&trace.end);
    let mut held = Held::default();
    trace.end.iter().for_each(|segment| held.add(segment.address, segment.bytes));
    trace.events.each_back(|_, record| {
        undoing.undo(&torch_event(record), &options);
        held.undo(record);
        if record.kind == Kind::Alloc {
            makers.remove(&record.address);
        }
    })?;
    let images = undoing.segments();
    trace.start_segments = held.segments();
    let within = images.iter().flat_map(|image| &image.used).map(|(at, bytes, _)| (*at, *bytes));
    let exact: HashMap<u64, u64> = within.collect();
    let start = |(at, bytes, asked): (u64, u64, u64)| Record {
        name: at,
        address: at,
        bytes: asked,
        granted: exact.get(&at).copied().unwrap_or(bytes),
        owner: makers.get(&at).copied().unwrap_or(before),
        ..Record::of(Kind::Alloc, 0)
    };
    trace.start = undoing.blocks().into_iter().map(start).collect();
    Ok(())
}

/// Of a file that breaks off the end is not known: what is freed and was never handed out was there before.
fn start_from_frees(trace: &mut Trace, before: u32) -> Result<(), Failed> {
    let mut seen = HashSet::new();
    let mut start = Vec::new();
    trace.events.each(|_, record| {
        let first = matches!(record.kind, Kind::Alloc | Kind::Free) && seen.insert(record.address);
        if first && record.kind == Kind::Free {
            let block = Record { kind: Kind::Alloc, owner: before, time_ns: 0, ..*record };
            start.push(block);
        }
        true
    })?;
    trace.start = start;
    Ok(())
}

/// What only a pass over all events can say.
fn fold(trace: &mut Trace) -> Result<(), Failed> {
    let mut live = Live::default();
    trace.start.iter().for_each(|block| live.take(block));
    let mut peak = live.requested();
    let (mut last, mut backward) = (0, 0);
    trace.events.each(|_, record| {
        live.take(record);
        peak = peak.max(live.requested());
        backward += u64::from(record.time_ns < last);
        last = record.time_ns;
        true
    })?;
    trace.peak_requested = peak;
    trace.notes.extend(strays(&live, backward));
    Ok(())
}

/// The settings that the recording program ran with, as far as they are told.
pub(crate) fn settings_of(trace: &Trace) -> CachingOptions {
    options_from(trace.settings.as_deref().unwrap_or_default())
}
