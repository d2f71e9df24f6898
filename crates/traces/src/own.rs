//! Reads vramlab's own trace; the lines are `memory`'s.

use crate::live::Live;
use crate::open::Failed;
use crate::owners::Owners;
use crate::reading::{LineEnd, Reading};
use crate::record::{Kind, Record};
use crate::spool::SpoolWriter;
use crate::trace::{Events, Format, Trace};
use std::collections::HashMap;
use std::sync::Arc;
use vramlab_memory::EventKind;
use vramlab_memory::trace::own::{Fields, Line, VERSION, Word, owner_of, parse};

/// What was read so far.
#[derive(Default)]
struct Reader {
    spool: SpoolWriter,
    owners: Owners,
    /// The trace's numbers of owners, in ours.
    named: HashMap<u64, u32>,
    start: Vec<Record>,
    live: Live,
    peak_requested: u64,
    device: Option<(u64, String)>,
    settings: Option<String>,
    skipped: u64,
    /// The first line that is no line of a trace, what is wrong with it, and how many there are.
    wrong: Option<(u64, &'static str)>,
    wrong_lines: u64,
    last_time: u64,
    backward: u64,
}

/// Reads a trace whose first line was recognised.
pub(crate) fn read(file: &str, mut reading: Reading) -> Result<Trace, Failed> {
    let mut reader = Reader::default();
    let mut line = Vec::new();
    let mut number = 0;
    let mut cut = false;
    loop {
        let end = reading.line(&mut line)?;
        if end == LineEnd::None {
            break;
        }
        number += 1;
        // A cut number would be another number, so a last line without its end is not used.
        if end == LineEnd::Cut {
            cut = true;
            break;
        }
        match parse(&line) {
            Ok(Line::Version(version)) if version > VERSION => {
                return Err(Failed::Unknown {
                    what: format!(
                        "a vramlab trace of version {version}; this vramlab reads up to {VERSION}: take a newer one"
                    ),
                });
            }
            Ok(line) => reader.take(line)?,
            Err(what) => reader.complain(number, what),
        }
    }
    let mut notes = Vec::new();
    let broken = reading.broken().map(str::to_string);
    if cut || broken.is_some() {
        let why = broken.map(|why| format!(", {why}")).unwrap_or_default();
        let at = reading.position();
        notes.push(format!(
            "the file breaks off in line {number} (byte {at}{why}); what is whole before it is used"
        ));
    }
    reader.finish(file, notes)
}

impl Reader {
    fn complain(&mut self, number: u64, what: &'static str) {
        self.wrong.get_or_insert((number, what));
        self.wrong_lines += 1;
    }

    fn take(&mut self, line: Line<'_>) -> Result<(), Failed> {
        match line {
            Line::Nothing | Line::Version(_) => {}
            Line::Device(bytes, name) => self.device = Some((bytes, name.to_string())),
            Line::Now(mode) => {
                self.settings = Some(mode.to_string()).filter(|mode| !mode.is_empty())
            }
            Line::Skipped(skipped) => self.skipped = skipped,
            Line::Owner(number, words) => {
                let owner = match words {
                    "unknown" | "" => 0,
                    words => self.owners.named(&owner_of(words).to_string()),
                };
                self.named.insert(number, owner);
            }
            Line::Row(word, fields) => self.row(word, &fields)?,
        }
        Ok(())
    }

    fn row(&mut self, word: Word, fields: &Fields<'_>) -> Result<(), Failed> {
        let record = self.record(word, fields);
        self.live.take(&record);
        self.peak_requested = self.peak_requested.max(self.live.requested());
        if word == Word::Live {
            self.start.push(record);
            return Ok(());
        }
        self.backward += u64::from(record.time_ns < self.last_time);
        self.last_time = record.time_ns;
        self.spool.push(&record)?;
        Ok(())
    }

    fn record(&mut self, word: Word, fields: &Fields<'_>) -> Record {
        let kind = match word {
            Word::Live => Kind::Alloc,
            Word::Event(kind) => kind_of(kind),
        };
        let owner = match kind {
            Kind::Mark | Kind::Other if !fields.text.is_empty() => self.owners.named(fields.text),
            _ => self.named.get(&fields.owner).copied().unwrap_or(0),
        };
        let region = matches!(kind, Kind::Grow | Kind::Release | Kind::Map | Kind::Unmap);
        Record {
            kind,
            stream: fields.stream as u32,
            owner,
            name: fields.block,
            address: fields.address,
            bytes: if region { fields.granted } else { fields.requested },
            granted: fields.granted,
            time_ns: fields.time_ns,
        }
    }

    fn finish(self, file: &str, mut notes: Vec<String>) -> Result<Trace, Failed> {
        if self.spool.is_empty() && self.start.is_empty() && self.wrong_lines > 0 {
            let (number, what) = self.wrong.unwrap_or((0, ""));
            return Err(Failed::Damaged {
                what: format!("no line of it can be read; line {number}: {what}"),
            });
        }
        if let Some((number, what)) = self.wrong {
            let lines = self.wrong_lines;
            notes.push(format!(
                "{lines} lines are no events and are left out; the first is line {number}: {what}"
            ));
        }
        if self.skipped > 0 {
            let skipped = self.skipped;
            notes.push(format!("{skipped} events came before the first one here; what the pool held then is not told"));
        }
        notes.extend(strays(&self.live, self.backward));
        let events = self.spool.len();
        Ok(Trace {
            file: file.to_string(),
            format: Format::Own,
            device: 0,
            device_name: self
                .device
                .as_ref()
                .map(|(_, name)| name.clone())
                .filter(|n| !n.is_empty()),
            capacity: self.device.map(|(bytes, _)| bytes).filter(|bytes| *bytes > 0),
            settings: self.settings,
            start: self.start,
            start_segments: Vec::new(),
            end: Vec::new(),
            cut: false,
            events: Events { spool: Arc::new(self.spool.finish()), range: 0..events },
            owners: Arc::new(self.owners),
            skipped: self.skipped,
            peak_requested: self.peak_requested,
            notes,
        })
    }
}

/// What the blocks of a file have to be said about.
pub(crate) fn strays(live: &Live, backward: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if live.strays > 0 {
        let strays = live.strays;
        notes.push(format!(
            "{strays} frees of blocks that were never handed out, or twice; they are ignored"
        ));
    }
    if live.twice > 0 {
        let twice = live.twice;
        notes.push(format!("{twice} blocks were handed out where one was still out; the earlier one counts as freed"));
    }
    if backward > 0 {
        notes.push(format!("the time goes back {backward} times; the order of the file counts"));
    }
    notes
}

fn kind_of(kind: EventKind) -> Kind {
    match kind {
        EventKind::Alloc => Kind::Alloc,
        EventKind::Free => Kind::Free,
        EventKind::RegionGrow => Kind::Grow,
        EventKind::RegionRelease => Kind::Release,
        EventKind::Map => Kind::Map,
        EventKind::Unmap => Kind::Unmap,
        EventKind::Oom => Kind::Oom,
        EventKind::OwnerChange => Kind::Give,
        EventKind::Migrate => Kind::Move,
        EventKind::CellBegin
        | EventKind::CellEnd
        | EventKind::ScopeBegin
        | EventKind::ScopeEnd
        | EventKind::ModeSwitch => Kind::Mark,
        _ => Kind::Other,
    }
}
