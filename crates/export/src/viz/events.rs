//! The kept events as PyTorch's trace of one device.

use super::Snapshot;
use crate::fold::Fold;
use crate::pickle::Items;
use std::collections::{BTreeMap, HashSet};
use std::io;
use vramlab_memory::BlockId;
use vramlab_memory::ledger::{Event, EventKind, Live};

impl Snapshot<'_, '_> {
    pub(super) fn device_traces(&mut self) -> io::Result<u64> {
        let waiting: HashSet<usize> = self.waiting.values().map(|free| free.index).collect();
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
            trace.event(event, waiting.contains(&index))?;
        }
        trace.end()?;
        let (events, count) = (trace.events, trace.count);
        self.pickle.end_list(events)?;
        self.pickle.end_list(devices)?;
        Ok(count)
    }
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
            EventKind::Free => {
                self.free(&before.unwrap_or_else(|| Live::made_by(event)), event, waits)
            }
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
        let made = Live::made_by(event);
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
