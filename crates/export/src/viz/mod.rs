//! A PyTorch memory snapshot (`torch.cuda.memory._dump_snapshot`), as a pickle of protocol 4: what memory_viz opens.
//!
//! `segments` are the regions held now, each tiled by its blocks; `device_traces` are the kept events of one device, in
//! PyTorch's words. A frame names the owner, and its file and line are the cell and the line that made the block. An
//! owner is the last name that the block had, since at the moment of its making it has none yet. A block that
//! moved in a switch of modes is one that was allocated anew and freed. Sizes of events are bytes asked for.

mod events;
mod segments;
mod waiting;

use crate::pickle::Pickler;
use crate::recording::{Recording, file_of};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use vramlab_memory::ledger::{EventKind, Owner, OwnerId, Site};
use vramlab_memory::modes::OptionValue;
use vramlab_memory::{BlockId, ModeName};
use waiting::{Waiting, waiting_frees};

pub(crate) fn write(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<String> {
    let mut snapshot = Snapshot {
        recording,
        pickle: Pickler::begin(out)?,
        frames: HashMap::new(),
        names: last_names(recording),
        waiting: waiting_frees(recording),
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
    /// Blocks that were given back and are still in use by a stream, by address.
    waiting: BTreeMap<u64, Waiting>,
}

impl Snapshot<'_, '_> {
    /// Whether segments grow in place, by mapping memory.
    pub(super) fn is_expandable(&self) -> bool {
        let mode = self.recording.heap.mode();
        match mode.mode() {
            ModeName::Vmm | ModeName::CudaAsync => true,
            ModeName::Caching => mode.switch("expandable_segments"),
            ModeName::Preallocate | ModeName::Ondemand | ModeName::Platform => false,
        }
    }

    /// Innermost first: the owner, then its cell.
    pub(super) fn stack(&mut self, owner: OwnerId, site: Site) -> io::Result<()> {
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
