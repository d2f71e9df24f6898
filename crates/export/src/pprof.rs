//! What is held now as pprof's `Profile` (profile.proto), gzipped, in the form of JAX's `device_memory_profile`.
//!
//! Sample types are `allocations` (count) and `space` (bytes), labels `kind` (`buffer` or `executable`) and `device`.
//! The bytes of a buffer are those that were asked for, as in JAX: slack is the allocator's. A stack is the owner's path
//! (`params[3].w`) within its cell, with the line that made it; blocks of one stack are one sample.

use crate::protobuf::Message;
use crate::recording::{Recording, file_of};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use vramlab_memory::ledger::Site;

pub(crate) fn write(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<String> {
    let mut profile = Profile::new(recording.device);
    let live = recording.ledger().live();
    let mut stacks: BTreeMap<(String, Site), Held> = BTreeMap::new();
    for block in &live {
        let stack = (recording.owner(block.owner), block.site);
        stacks.entry(stack).or_default().add(block.requested);
    }
    for ((owner, site), held) in &stacks {
        let locations = profile.stack(owner, *site);
        profile.sample("buffer", &locations, *held);
    }
    for executable in recording.executables {
        let locations = profile.stack(&executable.name, Site::default());
        profile.sample("executable", &locations, Held { count: 1, bytes: executable.bytes });
    }
    let time_ns = match recording.epoch_ns {
        0 => 0,
        epoch => epoch + recording.now_ns,
    };
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(profile.finished(time_ns).bytes())?;
    gzip.finish()?;
    Ok(format!("{} buffers, {} executables", live.len(), recording.executables.len()))
}

#[derive(Clone, Copy, Default)]
struct Held {
    count: u64,
    bytes: u64,
}

impl Held {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// Field numbers are those of profile.proto.
struct Profile {
    message: Message,
    strings: HashMap<String, u64>,
    /// In the order of their numbers.
    table: Vec<String>,
    functions: HashMap<(u64, u64), u64>,
    locations: HashMap<(u64, u64), u64>,
    device: u64,
}

impl Profile {
    fn new(device: &str) -> Profile {
        let mut profile = Profile {
            message: Message::default(),
            strings: HashMap::new(),
            table: Vec::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            device: 0,
        };
        // The first string of a profile is the empty one.
        profile.string("");
        profile.device = profile.string(device);
        for (kind, unit) in [("allocations", "count"), ("space", "bytes")] {
            let (kind, unit) = (profile.string(kind), profile.string(unit));
            let mut value_type = Message::default();
            value_type.number(1, kind).number(2, unit);
            profile.message.message(1, &value_type);
        }
        profile
    }

    fn string(&mut self, text: &str) -> u64 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let number = self.table.len() as u64;
        self.table.push(text.to_string());
        self.strings.insert(text.to_string(), number);
        number
    }

    /// Locations, innermost first: the owner, then its cell.
    fn stack(&mut self, owner: &str, site: Site) -> Vec<u64> {
        let file = file_of(site);
        let mut locations = vec![self.location(owner, &file, site.line)];
        if site.cell != 0 {
            locations.push(self.location(&file, &file, site.line));
        }
        locations
    }

    fn location(&mut self, name: &str, file: &str, line: u32) -> u64 {
        let key = (self.function(name, file), u64::from(line));
        if let Some(known) = self.locations.get(&key) {
            return *known;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(key, id);
        let (mut at, mut location) = (Message::default(), Message::default());
        at.number(1, key.0).number(2, key.1);
        location.number(1, id).message(4, &at);
        self.message.message(4, &location);
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let key = (self.string(name), self.string(file));
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let mut function = Message::default();
        function.number(1, id).number(2, key.0).number(3, key.0).number(4, key.1);
        self.message.message(5, &function);
        id
    }

    fn sample(&mut self, kind: &str, locations: &[u64], held: Held) {
        let mut sample = Message::default();
        sample.packed(1, locations).packed(2, &[held.count, held.bytes]);
        let labels = [("kind", self.string(kind)), ("device", self.device)];
        for (key, value) in labels {
            let mut label = Message::default();
            label.number(1, self.string(key)).number(2, value);
            sample.message(3, &label);
        }
        self.message.message(2, &sample);
    }

    fn finished(mut self, time_ns: u64) -> Message {
        let default = self.string("space");
        self.table.iter().for_each(|text| {
            self.message.text(6, text);
        });
        self.message.number(9, time_ns).number(14, default);
        self.message
    }
}
