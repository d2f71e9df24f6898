//! A PyTorch memory snapshot (`torch.cuda.memory._dump_snapshot`), as a pickle of protocol 4: what memory_viz opens.
//!
//! `segments` are the regions held now, each tiled by its blocks; `device_traces` are the kept events of one device, in
//! PyTorch's words. A frame names the owner, and its file and line are the cell and the line that made the block. An
//! owner is the last name that the block had, since at the moment of its making it has none yet. A block that
//! moved in a switch of modes is one that was allocated anew and freed. Sizes of events are bytes asked for.

use crate::fold::{Fold, live_of};
use crate::pickle::{Items, Pickler};
use crate::recording::{Recording, file_of};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use vramlab_memory::ledger::{Event, EventKind, Live, Owner, Site};
use vramlab_memory::modes::OptionValue;
use vramlab_memory::{BlockId, Chunk, ChunkState, MIB, ModeName, OwnerId, RegionFigures};

pub(crate) fn write(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<String> {
    let mut snapshot = Snapshot {
        recording,
        pickle: Pickler::begin(out)?,
        frames: HashMap::new(),
        names: last_names(recording),
    };
    snapshot.pickle.dict()?;
    let segments = snapshot.segments()?;
    let events = snapshot.device_traces()?;
    snapshot.settings()?;
    snapshot.pickle.text("external_annotations")?;
    let none = snapshot.pickle.list()?;
    snapshot.pickle.end_list(none)?;
    snapshot.pickle.end_dict()?;
    snapshot.pickle.end()?;
    Ok(format!("{segments} segments, {events} events"))
}

/// The last name of each block that got one while the ledger kept its events.
fn last_names(recording: &Recording<'_>) -> HashMap<BlockId, OwnerId> {
    let ledger = recording.ledger();
    let is_name = |owner| {
        !matches!(
            ledger.owner(owner),
            Owner::Unknown | Owner::MadeIn { .. } | Owner::Temporary(_) | Owner::LastError
        )
    };
    let changes = ledger.events().filter(|event| event.kind == EventKind::OwnerChange);
    let named = changes.filter(|event| is_name(event.owner));
    named.map(|event| (event.block, event.owner)).collect()
}

struct Snapshot<'a, 'w> {
    recording: &'a Recording<'a>,
    pickle: Pickler<'w>,
    /// Stacks that were written, by their number in the reader's memory.
    frames: HashMap<(OwnerId, Site), u32>,
    names: HashMap<BlockId, OwnerId>,
}

impl Snapshot<'_, '_> {
    fn segments(&mut self) -> io::Result<usize> {
        let heap = self.recording.heap;
        let live = self.recording.ledger().live();
        let live: HashMap<u64, &Live> = live.iter().map(|live| (live.address, live)).collect();
        let mut chunks = heap.chunks();
        chunks.sort_unstable_by_key(|chunk| chunk.address);
        let mut regions = heap.regions();
        regions.sort_unstable_by_key(|region| region.base);
        self.pickle.text("segments")?;
        let mut items = self.pickle.list()?;
        for region in &regions {
            let end = region.base + region.bytes;
            let first = chunks.partition_point(|chunk| chunk.address < region.base);
            let last = chunks.partition_point(|chunk| chunk.address < end);
            self.pickle.item(&mut items)?;
            self.segment(region, &chunks[first..last], &live)?;
        }
        self.pickle.end_list(items)?;
        Ok(regions.len())
    }

    fn segment(
        &mut self,
        region: &RegionFigures,
        chunks: &[Chunk],
        live: &HashMap<u64, &Live>,
    ) -> io::Result<()> {
        let mode = self.recording.heap.mode();
        let bytes_in = |states: &[ChunkState]| {
            let such = chunks.iter().filter(|chunk| states.contains(&chunk.state));
            such.map(|chunk| chunk.bytes).sum::<u64>()
        };
        let blocks = chunks.iter().filter_map(|chunk| live.get(&chunk.address));
        let requested = blocks.clone().map(|live| live.requested).sum();
        let stream = blocks.clone().next().map_or(0, |live| live.stream.0);
        let is_small = mode.mode() == ModeName::Caching && region.bytes == 2 * MIB;
        self.pickle.dict()?;
        self.pickle.entry_number("device", 0)?;
        self.pickle.entry_number("address", region.base)?;
        self.pickle.entry_number("total_size", region.bytes)?;
        self.pickle.entry_number("allocated_size", bytes_in(&[ChunkState::Used]))?;
        let active = bytes_in(&[ChunkState::Used, ChunkState::Pending]);
        self.pickle.entry_number("active_size", active)?;
        self.pickle.entry_number("requested_size", requested)?;
        self.pickle.entry_number("stream", u64::from(stream))?;
        self.pickle.entry_text("segment_type", if is_small { "small" } else { "large" })?;
        self.pickle.text("segment_pool_id")?;
        self.pickle.pair_of_zeros()?;
        self.pickle.entry_truth("is_expandable", self.is_expandable())?;
        self.pickle.text("frames")?;
        let none = self.pickle.list()?;
        self.pickle.end_list(none)?;
        self.pickle.text("blocks")?;
        let mut items = self.pickle.list()?;
        for chunk in chunks {
            self.pickle.item(&mut items)?;
            self.block(chunk, live.get(&chunk.address).copied())?;
        }
        self.pickle.end_list(items)?;
        self.pickle.end_dict()
    }

    /// Whether segments grow in place, by mapping memory.
    fn is_expandable(&self) -> bool {
        let mode = self.recording.heap.mode();
        match mode.mode() {
            ModeName::Vmm | ModeName::CudaAsync => true,
            ModeName::Caching => mode.switch("expandable_segments"),
            ModeName::Preallocate | ModeName::Ondemand | ModeName::Platform => false,
        }
    }

    fn block(&mut self, chunk: &Chunk, live: Option<&Live>) -> io::Result<()> {
        let state = match chunk.state {
            ChunkState::Used => "active_allocated",
            ChunkState::Pending => "active_pending_free",
            ChunkState::Free => "inactive",
        };
        let live = live.filter(|_| chunk.state == ChunkState::Used);
        self.pickle.dict()?;
        self.pickle.entry_number("address", chunk.address)?;
        self.pickle.entry_number("size", chunk.bytes)?;
        self.pickle.entry_number("requested_size", live.map_or(0, |live| live.requested))?;
        self.pickle.entry_text("state", state)?;
        self.pickle.text("frames")?;
        match live {
            Some(live) => self.stack(live.owner, live.site)?,
            None => {
                let none = self.pickle.list()?;
                self.pickle.end_list(none)?;
            }
        }
        self.pickle.end_dict()
    }

    /// Innermost first: the owner, then its cell.
    fn stack(&mut self, owner: OwnerId, site: Site) -> io::Result<()> {
        if let Some(kept) = self.frames.get(&(owner, site)) {
            return self.pickle.again(*kept);
        }
        let file = file_of(site);
        let owner_name = self.recording.owner(owner);
        let mut items = self.pickle.list()?;
        for name in [owner_name.as_str(), file.as_str()].iter().filter(|name| !name.is_empty()) {
            self.pickle.item(&mut items)?;
            self.pickle.dict()?;
            self.pickle.entry_text("name", name)?;
            self.pickle.entry_text("filename", &file)?;
            self.pickle.entry_number("line", u64::from(site.line))?;
            self.pickle.end_dict()?;
        }
        self.pickle.end_list(items)?;
        let kept = self.pickle.keep()?;
        self.frames.insert((owner, site), kept);
        Ok(())
    }

    fn device_traces(&mut self) -> io::Result<u64> {
        let pending = last_frees_that_wait(self.recording);
        let fold = Fold::at_start(self.recording);
        let by_address = fold.live.values().map(|live| (live.address, live.block)).collect();
        self.pickle.text("device_traces")?;
        let mut devices = self.pickle.list()?;
        self.pickle.item(&mut devices)?;
        let events = self.pickle.list()?;
        let mut trace = DeviceTrace {
            snapshot: self,
            fold,
            by_address,
            lifted: HashSet::new(),
            events,
            count: 0,
        };
        let all = trace.snapshot.recording.ledger().events();
        for (index, event) in all.enumerate() {
            trace.event(event, pending.contains(&index))?;
        }
        trace.end()?;
        let (events, count) = (trace.events, trace.count);
        self.pickle.end_list(events)?;
        self.pickle.end_list(devices)?;
        Ok(count)
    }

    /// The settings under PyTorch's names, and our mode beside them.
    fn settings(&mut self) -> io::Result<()> {
        let mode = self.recording.heap.mode();
        self.pickle.text("allocator_settings")?;
        self.pickle.dict()?;
        let conf = mode.torch_conf().unwrap_or_default();
        self.pickle.entry_text("PYTORCH_CUDA_ALLOC_CONF", &conf)?;
        self.pickle.text("max_split_size")?;
        match mode.value("max_split_size") {
            Some(OptionValue::Bytes(Some(bytes))) => self.pickle.number(bytes)?,
            _ => self.pickle.minus_one()?,
        }
        self.pickle.text("garbage_collection_threshold")?;
        match mode.value("garbage_collection_threshold") {
            Some(OptionValue::Threshold(part)) => self.pickle.float(part)?,
            _ => self.pickle.float(0.0)?,
        }
        self.pickle.entry_truth("expandable_segments", self.is_expandable())?;
        self.pickle.entry_text("vramlab_mode", &mode.to_string())?;
        self.pickle.end_dict()
    }
}

/// Indices of the events that gave back what no stream has let go yet: they have no `free_completed`.
fn last_frees_that_wait(recording: &Recording<'_>) -> HashSet<usize> {
    let chunks = recording.heap.chunks().into_iter();
    let waiting = chunks.filter(|chunk| chunk.state == ChunkState::Pending);
    let mut last: HashMap<u64, Option<usize>> =
        waiting.map(|chunk| (chunk.address, None)).collect();
    if last.is_empty() {
        return HashSet::new();
    }
    for (index, event) in recording.ledger().events().enumerate() {
        if event.kind == EventKind::Free
            && let Some(found) = last.get_mut(&event.address)
        {
            *found = Some(index);
        }
    }
    last.into_values().flatten().collect()
}

/// The trace of the device while it is written.
struct DeviceTrace<'s, 'a, 'w> {
    snapshot: &'s mut Snapshot<'a, 'w>,
    fold: Fold,
    by_address: BTreeMap<u64, BlockId>,
    /// Blocks that left the device in a switch and have not come back yet.
    lifted: HashSet<BlockId>,
    events: Items,
    count: u64,
}

impl DeviceTrace<'_, '_, '_> {
    fn event(&mut self, event: &Event, waits: bool) -> io::Result<()> {
        if matches!(event.kind, EventKind::RegionRelease | EventKind::Unmap) {
            self.lift_from(event)?;
        }
        let before = self.fold.apply(event);
        match event.kind {
            EventKind::Alloc => self.alloc(event),
            EventKind::Free => self.free(&before.unwrap_or_else(|| live_of(event)), event, waits),
            EventKind::Migrate => self.migrate(event, before),
            EventKind::RegionGrow => self.region("segment_alloc", event),
            EventKind::RegionRelease => self.region("segment_free", event),
            EventKind::Map => self.region("segment_map", event),
            EventKind::Unmap => self.region("segment_unmap", event),
            EventKind::Oom => self.oom(event),
            EventKind::DriverRefusal
            | EventKind::ModeSwitch
            | EventKind::Reclaim
            | EventKind::BackOff
            | EventKind::CellBegin
            | EventKind::CellEnd
            | EventKind::ScopeBegin
            | EventKind::ScopeEnd
            | EventKind::OwnerChange
            | EventKind::Compile
            | EventKind::CacheInsert
            | EventKind::CacheEvict => Ok(()),
        }
    }

    fn alloc(&mut self, event: &Event) -> io::Result<()> {
        self.by_address.insert(event.address, event.block);
        let made = live_of(event);
        self.put("alloc", &made, event.time_ns)
    }

    fn free(&mut self, block: &Live, event: &Event, waits: bool) -> io::Result<()> {
        if self.by_address.get(&block.address) == Some(&block.block) {
            self.by_address.remove(&block.address);
        }
        self.put("free_requested", block, event.time_ns)?;
        if waits {
            return Ok(());
        }
        self.put("free_completed", block, event.time_ns)
    }

    /// The block lies elsewhere from here on: allocated there, freed here unless it had left already.
    fn migrate(&mut self, event: &Event, before: Option<Live>) -> io::Result<()> {
        let Some(before) = before else { return Ok(()) };
        let moved = Live { address: event.address, granted: event.granted, ..before };
        self.put("alloc", &moved, event.time_ns)?;
        if !self.lifted.remove(&before.block) {
            self.free(&before, event, false)?;
        }
        self.by_address.insert(moved.address, moved.block);
        Ok(())
    }

    /// Blocks that are live in a region that goes are on their way through the host.
    fn lift_from(&mut self, event: &Event) -> io::Result<()> {
        let end = event.address.saturating_add(event.granted);
        let within: Vec<BlockId> =
            self.by_address.range(event.address..end).map(|(_, block)| *block).collect();
        for block in within {
            if let Some(live) = self.fold.live.get(&block).copied() {
                self.lifted.insert(block);
                self.free(&live, event, false)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, action: &str) -> io::Result<()> {
        self.count += 1;
        let pickle = &mut self.snapshot.pickle;
        pickle.item(&mut self.events)?;
        pickle.dict()?;
        pickle.entry_text("action", action)
    }

    fn put(&mut self, action: &str, block: &Live, time_ns: u64) -> io::Result<()> {
        self.begin(action)?;
        let owner = *self.snapshot.names.get(&block.block).unwrap_or(&block.owner);
        self.snapshot.pickle.entry_number("addr", block.address)?;
        self.rest(block.requested, block.stream.0, time_ns)?;
        self.snapshot.stack(owner, block.site)?;
        self.snapshot.pickle.end_dict()
    }

    fn region(&mut self, action: &str, event: &Event) -> io::Result<()> {
        self.begin(action)?;
        self.snapshot.pickle.entry_number("addr", event.address)?;
        self.rest(event.granted, event.stream.0, event.time_ns)?;
        self.snapshot.stack(event.owner, event.site)?;
        self.snapshot.pickle.end_dict()
    }

    fn oom(&mut self, event: &Event) -> io::Result<()> {
        let device = self.snapshot.recording.heap.device();
        let free = device.total.saturating_sub(device.others).saturating_sub(self.fold.pool);
        self.begin("oom")?;
        self.snapshot.pickle.entry_number("device_free", free)?;
        self.rest(event.requested, event.stream.0, event.time_ns)?;
        self.snapshot.stack(event.owner, event.site)?;
        self.snapshot.pickle.end_dict()
    }

    /// The entries that every event has, up to its stack.
    fn rest(&mut self, bytes: u64, stream: u32, time_ns: u64) -> io::Result<()> {
        let time_us = (self.snapshot.recording.epoch_ns + time_ns) / 1000;
        let pickle = &mut self.snapshot.pickle;
        pickle.entry_number("size", bytes)?;
        pickle.entry_number("stream", u64::from(stream))?;
        pickle.entry_number("time_us", time_us)?;
        pickle.text("frames")
    }

    /// PyTorch's last event is the snapshot itself.
    fn end(&mut self) -> io::Result<()> {
        let now_ns = self.snapshot.recording.now_ns;
        self.begin("snapshot")?;
        self.snapshot.pickle.entry_number("addr", 0)?;
        self.rest(0, 0, now_ns)?;
        let none = self.snapshot.pickle.list()?;
        self.snapshot.pickle.end_list(none)?;
        self.snapshot.pickle.end_dict()
    }
}
