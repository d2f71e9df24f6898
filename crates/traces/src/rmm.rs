//! Reads the CSV of RMM's `logging_resource_adaptor`.
//!
//! Columns are found by the header's names; a log without one (RMM writes none to standard output) has them in the
//! usual order. Actions are `allocate`, `free` (`deallocate` in some versions) and `allocate failure`. Times are clock
//! times, with a point or a colon before the fraction, or seconds; a clock that falls by half a day passed midnight.

use crate::live::Live;
use crate::open::Failed;
use crate::own::strays;
use crate::owners::Owners;
use crate::reading::{LineEnd, Reading};
use crate::record::{Kind, Record};
use crate::spool::SpoolWriter;
use crate::trace::{Events, Format, Trace};
use std::collections::HashMap;
use std::sync::Arc;

const NAMES: [&[u8]; 6] = [b"thread", b"time", b"action", b"pointer", b"size", b"stream"];
const USUAL: [Option<usize>; 6] = [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)];
const DAY_NS: u64 = 86_400_000_000_000;

/// Whether the beginning of a file is that of a log.
pub(crate) fn looks_like(first: &[u8]) -> bool {
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or(first);
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let words = [&b"thread,"[..], b"action,", b"time,"];
    let header = words.iter().any(|word| starts_with_ignoring_case(line, word));
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    header || fields.get(2).is_some_and(|action| action_of(action).is_some())
}

fn starts_with_ignoring_case(line: &[u8], word: &[u8]) -> bool {
    line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn action_of(field: &[u8]) -> Option<Kind> {
    match field.trim_ascii() {
        b"allocate" => Some(Kind::Alloc),
        b"free" | b"deallocate" => Some(Kind::Free),
        b"allocate failure" | b"allocate_failure" => Some(Kind::Oom),
        _ => None,
    }
}

struct Reader {
    columns: [Option<usize>; 6],
    spool: SpoolWriter,
    owners: Owners,
    threads: HashMap<Vec<u8>, u32>,
    streams: HashMap<u64, u32>,
    live: Live,
    peak_requested: u64,
    wrong: Option<(u64, &'static str)>,
    wrong_lines: u64,
    days: u64,
    last_time: u64,
    backward: u64,
}

/// Reads a log.
pub(crate) fn read(file: &str, mut reading: Reading) -> Result<Trace, Failed> {
    let mut reader = Reader {
        columns: USUAL,
        spool: SpoolWriter::default(),
        owners: Owners::default(),
        threads: HashMap::new(),
        streams: HashMap::new(),
        live: Live::default(),
        peak_requested: 0,
        wrong: None,
        wrong_lines: 0,
        days: 0,
        last_time: 0,
        backward: 0,
    };
    let mut notes = Vec::new();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        let end = reading.line(&mut line)?;
        if end == LineEnd::None {
            break;
        }
        number += 1;
        // A last line that lacks its end is used if its last column is there: that is the stream.
        let whole = reading.broken().is_none() && reader.has_all_columns(&line);
        if end == LineEnd::Cut && !whole {
            let at = reading.position();
            notes.push(format!(
                "the log breaks off in line {number} (byte {at}); what is whole before it is used"
            ));
            break;
        }
        reader.line(&line, number)?;
    }
    reader.finish(file, notes)
}

impl Reader {
    fn has_all_columns(&self, line: &[u8]) -> bool {
        let last = self.columns.iter().flatten().max().copied().unwrap_or(0);
        line.split(|byte| *byte == b',')
            .nth(last)
            .is_some_and(|field| !field.trim_ascii().is_empty())
    }

    fn line(&mut self, line: &[u8], number: u64) -> Result<(), Failed> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let mut fields = [&line[..0]; 16];
        let mut count = 0;
        for (field, place) in line.split(|byte| *byte == b',').zip(&mut fields) {
            *place = field.trim_ascii();
            count += 1;
        }
        let fields = &fields[..count];
        // Logs that were joined have a header in their middle.
        if fields.iter().any(|field| field.eq_ignore_ascii_case(b"action")) {
            let at =
                |name: &&[u8]| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
            self.columns = NAMES.each_ref().map(at);
            return Ok(());
        }
        match self.record(fields) {
            Ok(Some(record)) => {
                self.live.take(&record);
                self.peak_requested = self.peak_requested.max(self.live.requested());
                self.spool.push(&record)?;
            }
            Ok(None) => {}
            Err(what) => {
                self.wrong.get_or_insert((number, what));
                self.wrong_lines += 1;
            }
        }
        Ok(())
    }

    fn record(&mut self, fields: &[&[u8]]) -> Result<Option<Record>, &'static str> {
        let of = |column: usize| self.columns[column].and_then(|at| fields.get(at)).copied();
        let action = of(2).ok_or("there is no action")?;
        let kind =
            action_of(action).ok_or("the action is not allocate, free or allocate failure")?;
        let pointer =
            number(of(3).ok_or("there is no pointer")?).ok_or("the pointer is no number")?;
        let bytes =
            number(of(4).ok_or("there is no size")?).ok_or("the size is no number of 64 bits")?;
        // A request for nothing gives no memory, and all of them share a pointer.
        if bytes == 0 || (pointer == 0 && kind != Kind::Oom) {
            return Ok(None);
        }
        let time = of(1).and_then(time_ns);
        let (thread, stream) = (of(0), of(5).and_then(number).unwrap_or(0));
        let time_ns = self.later(time);
        let next = self.streams.len() as u32;
        let stream = *self.streams.entry(stream).or_insert(next);
        let owner = thread.map_or(0, |thread| self.thread(thread));
        let granted = if kind == Kind::Oom { 0 } else { bytes };
        Ok(Some(Record {
            kind,
            stream,
            owner,
            name: pointer,
            address: pointer,
            bytes,
            granted,
            time_ns,
        }))
    }

    fn thread(&mut self, thread: &[u8]) -> u32 {
        if let Some(owner) = self.threads.get(thread) {
            return *owner;
        }
        let owner = self.owners.named(&format!("thread {}", String::from_utf8_lossy(thread)));
        self.threads.insert(thread.to_vec(), owner);
        owner
    }

    /// The time of the next event, with the days that its clock does not show.
    fn later(&mut self, time: Option<(u64, bool)>) -> u64 {
        let Some((time, clock)) = time else { return self.last_time };
        let days = if clock { self.days } else { 0 };
        let mut at = time.saturating_add(days.saturating_mul(DAY_NS));
        if clock && at.saturating_add(DAY_NS / 2) < self.last_time {
            self.days += 1;
            at = at.saturating_add(DAY_NS);
        }
        self.backward += u64::from(at < self.last_time);
        self.last_time = at;
        at
    }

    fn finish(self, file: &str, mut notes: Vec<String>) -> Result<Trace, Failed> {
        if self.spool.is_empty() && self.wrong_lines > 0 {
            let (number, what) = self.wrong.unwrap_or((0, ""));
            return Err(Failed::Damaged {
                what: format!("no line of it is an event; line {number}: {what}"),
            });
        }
        if let Some((number, what)) = self.wrong {
            let lines = self.wrong_lines;
            notes.push(format!(
                "{lines} lines are no events and are left out; the first is line {number}: {what}"
            ));
        }
        notes.extend(strays(&self.live, self.backward));
        let events = self.spool.len();
        Ok(Trace {
            file: file.to_string(),
            format: Format::Rmm,
            device: 0,
            device_name: None,
            capacity: None,
            settings: None,
            start: Vec::new(),
            start_segments: Vec::new(),
            end: Vec::new(),
            cut: false,
            events: Events { spool: Arc::new(self.spool.finish()), range: 0..events },
            owners: Arc::new(self.owners),
            skipped: 0,
            peak_requested: self.peak_requested,
            notes,
        })
    }
}

/// A number, decimal or hexadecimal after `0x`; C's `(nil)` is 0.
fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text == "(nil)" => Some(0),
        None => text.parse().ok(),
    }
}

/// Nanoseconds, and whether they are a clock's.
fn time_ns(field: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(field).ok()?;
    let mut parts = text.splitn(3, ':');
    let (first, minutes, rest) = (parts.next()?, parts.next(), parts.next());
    let (Some(minutes), Some(rest)) = (minutes, rest) else {
        if minutes.is_some() {
            return None;
        }
        let (whole, fraction) = first.split_once('.').unwrap_or((first, ""));
        let seconds: u64 = whole.parse().ok()?;
        return Some((
            seconds.checked_mul(1_000_000_000)?.checked_add(fraction_ns(fraction)?)?,
            false,
        ));
    };
    let (seconds, fraction) = rest.split_once(['.', ':']).unwrap_or((rest, ""));
    let hours: u64 = first.parse().ok().filter(|hours| *hours < 48)?;
    let minutes: u64 = minutes.parse().ok().filter(|minutes| *minutes < 60)?;
    let seconds: u64 = seconds.parse().ok().filter(|seconds| *seconds < 61)?;
    Some((((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction_ns(fraction)?, true))
}

fn fraction_ns(digits: &str) -> Option<u64> {
    let digits = digits.get(..9).unwrap_or(digits);
    if digits.is_empty() {
        return Some(0);
    }
    let value: u64 = digits.parse().ok()?;
    Some(value * 10u64.pow(9 - digits.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_version() {
        for (text, ns) in [
            ("14:21:19.998533", Some((51_679_998_533_000, true))),
            ("14:21:19:998533", Some((51_679_998_533_000, true))),
            ("14:21:19", Some((51_679_000_000_000, true))),
            ("1634567890.123456", Some((1_634_567_890_123_456_000, false))),
            ("12", Some((12_000_000_000, false))),
            ("", None),
            ("noon", None),
            ("99:00:00", None),
            ("1:2", None),
        ] {
            assert_eq!(time_ns(text.as_bytes()), ns, "{text}");
        }
    }
}
