//! vramlab's own trace: a text, a line an event, each with the words and numbers of one row of [`ROWS`].
//!
//! Both directions stand here: [`lines`] writes a ledger, [`parse`] reads a line, and both follow the same table. The
//! format for people is in `docs/trace-format.md`.

use crate::ledger::{Event, EventKind, Ledger, Owner, OwnerId, Site};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The version that is written; later ones are refused, since a new meaning of an old word could not be noticed.
pub const VERSION: u64 = 1;

/// What the first line says before its version.
pub const MAGIC: &str = "vramlab trace ";

/// One field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// When, in nanoseconds.
    Time,
    /// The block's number: no two blocks of a trace share it.
    Block,
    /// Bytes asked for.
    Requested,
    /// Bytes held for it.
    Granted,
    /// Where it lies.
    Address,
    /// The number of an owner that an `owner` line named before.
    Owner,
    /// The stream.
    Stream,
    /// The cell that ran; 0 is none.
    Cell,
    /// The line of that cell.
    Line,
    /// The rest of the line: a name.
    Text,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A block that was out where the trace begins.
    Live,
    /// An event.
    Event(EventKind),
}

/// One row of the format.
#[derive(Debug)]
pub struct Row {
    /// The word that the line begins with.
    pub word: &'static str,
    /// What it is about.
    pub about: Word,
    /// How many of the fields must be there.
    pub required: usize,
    /// The fields after the word, in order.
    pub fields: &'static [Field],
}

use Field::{Address, Block, Cell, Granted, Line as LineNo, Requested, Text, Time};

const BLOCK: &[Field] =
    &[Time, Block, Requested, Granted, Address, Field::Owner, Field::Stream, Cell, LineNo];
const REGION: &[Field] = &[Time, Granted, Address];
const NAMED: &[Field] = &[Time, Text];
const SIZED: &[Field] = &[Time, Granted, Text];

const fn row(
    word: &'static str,
    kind: EventKind,
    required: usize,
    fields: &'static [Field],
) -> Row {
    Row { word, about: Word::Event(kind), required, fields }
}

/// Every line that carries an event, the frequent ones first.
pub static ROWS: &[Row] = &[
    row("alloc", EventKind::Alloc, 3, BLOCK),
    row("free", EventKind::Free, 2, &[Time, Block, Field::Stream]),
    Row { word: "live", about: Word::Live, required: 3, fields: BLOCK },
    row("give", EventKind::OwnerChange, 3, &[Time, Block, Field::Owner]),
    row("move", EventKind::Migrate, 2, &[Time, Block, Granted, Address]),
    row("grow", EventKind::RegionGrow, 2, REGION),
    row("release", EventKind::RegionRelease, 2, REGION),
    row("map", EventKind::Map, 2, REGION),
    row("unmap", EventKind::Unmap, 2, REGION),
    row("refused", EventKind::DriverRefusal, 2, &[Time, Requested]),
    row("oom", EventKind::Oom, 2, &[Time, Requested, Field::Owner, Field::Stream, Cell, LineNo]),
    row("reclaim", EventKind::Reclaim, 2, SIZED),
    row("backoff", EventKind::BackOff, 2, &[Time, Granted]),
    row("mode", EventKind::ModeSwitch, 2, NAMED),
    row("cell", EventKind::CellBegin, 2, NAMED),
    row("end", EventKind::CellEnd, 1, NAMED),
    row("scope", EventKind::ScopeBegin, 1, NAMED),
    row("leave", EventKind::ScopeEnd, 1, NAMED),
    row("compile", EventKind::Compile, 1, SIZED),
    row("cached", EventKind::CacheInsert, 1, SIZED),
    row("evicted", EventKind::CacheEvict, 1, SIZED),
];

/// What is said once, before the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The device's name.
    pub device: String,
    /// Its size in bytes.
    pub capacity: u64,
    /// The mode when the trace was written, with its options.
    pub mode: String,
}

/// One event or live block as a line says it; what it does not say is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// Nanoseconds.
    pub time_ns: u64,
    /// The block's number.
    pub block: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes held.
    pub granted: u64,
    /// Where.
    pub address: u64,
    /// The number of an owner.
    pub owner: u64,
    /// The stream.
    pub stream: u64,
    /// The cell and line.
    pub site: Site,
    /// A name.
    pub text: &'a str,
}

/// A line, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Nothing: an empty line, a remark, or a word that a later writer added.
    Nothing,
    /// `vramlab trace N`.
    Version(u64),
    /// `device BYTES NAME`.
    Device(u64, &'a str),
    /// `now MODE`: the mode when the trace was written.
    Now(&'a str),
    /// `skipped N`: how many events came before the first one here.
    Skipped(u64),
    /// `owner N KIND NAME`.
    Owner(u64, &'a str),
    /// A block or an event.
    Row(Word, Fields<'a>),
}

/// Reads one line, without its end.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(line: &[u8]) -> Result<Line<'_>, &'static str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (word, mut rest) = next_word(line);
    if let Some(row) = ROWS.iter().find(|row| row.word.as_bytes() == word) {
        return Ok(Line::Row(row.about, fields(row, rest)?));
    }
    match word {
        b"owner" => Ok(Line::Owner(take_number(&mut rest)?, text(rest)?)),
        b"device" => Ok(Line::Device(take_number(&mut rest)?, text(rest)?)),
        b"skipped" => Ok(Line::Skipped(take_number(&mut rest)?)),
        b"now" => Ok(Line::Now(text(rest)?)),
        b"vramlab" if rest.starts_with(b"trace ") => {
            rest = &rest[b"trace ".len()..];
            Ok(Line::Version(take_number(&mut rest)?))
        }
        _ => Ok(Line::Nothing),
    }
}

fn fields<'a>(row: &Row, line: &'a [u8]) -> Result<Fields<'a>, &'static str> {
    let mut rest = line;
    let mut all = Fields::default();
    for (index, field) in row.fields.iter().enumerate() {
        if rest.is_empty() {
            return if index < row.required { Err("a field is missing") } else { Ok(all) };
        }
        if *field == Text {
            all.text = text(rest)?;
            return Ok(all);
        }
        let number = take_number(&mut rest)?;
        let small = || u32::try_from(number).map_err(|_| "a cell or line beyond 32 bits");
        match field {
            Time => all.time_ns = number,
            Block => all.block = number,
            Requested => all.requested = number,
            Granted => all.granted = number,
            Address => all.address = number,
            Field::Owner => all.owner = number,
            Field::Stream => all.stream = number,
            Cell => all.site.cell = small()?,
            LineNo => all.site.line = small()?,
            Text => {}
        }
    }
    if rest.is_empty() { Ok(all) } else { Err("there is more than its word has") }
}

fn next_word(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(end) => (&line[..end], &line[end + 1..]),
        None => (line, &[]),
    }
}

fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(bytes).map_err(|_| "a name is not UTF-8")
}

/// A number, decimal or after `0x`, and the one blank behind it.
fn take_number(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let hex = rest.starts_with(b"0x");
    let digits = if hex { &rest[2..] } else { *rest };
    let mut value = 0u64;
    let mut count = 0;
    for byte in digits {
        let digit = match byte {
            b'0'..=b'9' => u64::from(byte - b'0'),
            b'a'..=b'f' if hex => u64::from(byte - b'a' + 10),
            b'A'..=b'F' if hex => u64::from(byte - b'A' + 10),
            b' ' => break,
            _ => return Err("not a number"),
        };
        let above = value.checked_mul(if hex { 16 } else { 10 }).and_then(|v| v.checked_add(digit));
        value = above.ok_or("a number beyond 64 bits")?;
        count += 1;
    }
    if count == 0 {
        return Err("a number is missing");
    }
    let after = &digits[count..];
    *rest = after.get(1..).unwrap_or(&[]);
    Ok(value)
}

/// A ledger as lines, each with its end, in order: the header, the blocks live where the kept events begin, the
/// events. Nothing is collected: a line is made when it is asked for.
pub fn lines<'a>(ledger: &'a Ledger, header: &Header) -> impl Iterator<Item = String> + 'a {
    let mut first = format!("{MAGIC}{VERSION}\n");
    let _ = writeln!(first, "device {} {}", header.capacity, one_line(&header.device));
    let _ = writeln!(first, "now {}", one_line(&header.mode));
    let _ = writeln!(first, "skipped {}", ledger.dropped());
    let mut named = HashSet::new();
    let live = ledger.checkpoint().into_iter().map(|live| (Word::Live, Event::making(&live)));
    let events = ledger.events().map(|event| (Word::Event(event.kind), *event));
    let body = live.chain(events).map(move |(about, event)| {
        let mut line = String::new();
        if named.insert(event.owner) {
            name_owner(&mut line, ledger, event.owner);
        }
        write_row(&mut line, about, &event, ledger.text_of(event.text));
        line
    });
    std::iter::once(first).chain(body)
}

/// The kind of an owner as an `owner` line says it, and its name.
fn owner_words(owner: &Owner) -> (&'static str, String) {
    match owner {
        Owner::Unknown => ("unknown", String::new()),
        Owner::Variable(path) => ("variable", path.clone()),
        Owner::Out(cell) => ("out", cell.to_string()),
        Owner::Temporary(of) => ("temporary", of.clone()),
        Owner::CapturedConstant(of) => ("constant", of.clone()),
        Owner::Residual(of) => ("residual", of.clone()),
        Owner::Cache(name) => ("cache", name.clone()),
        Owner::LastError => ("error", String::new()),
        Owner::MadeIn { cell, line } => ("made", format!("{cell} {line}")),
    }
}

/// An owner as its kind and name say it, back; a kind that is not known is a variable of that whole name.
pub fn owner_of(words: &str) -> Owner {
    let (kind, name) = words.split_once(' ').unwrap_or((words, ""));
    let own = || name.to_string();
    let made = || {
        let (cell, line) = name.split_once(' ')?;
        Some(Owner::MadeIn { cell: cell.parse().ok()?, line: line.parse().ok()? })
    };
    match kind {
        "unknown" => Owner::Unknown,
        "variable" => Owner::Variable(own()),
        "out" => name.parse().map_or_else(|_| Owner::Variable(words.to_string()), Owner::Out),
        "temporary" => Owner::Temporary(own()),
        "constant" => Owner::CapturedConstant(own()),
        "residual" => Owner::Residual(own()),
        "cache" => Owner::Cache(own()),
        "error" => Owner::LastError,
        "made" => made().unwrap_or_else(|| Owner::Variable(words.to_string())),
        _ => Owner::Variable(words.to_string()),
    }
}

fn name_owner(line: &mut String, ledger: &Ledger, owner: OwnerId) {
    let (kind, name) = owner_words(ledger.owner(owner));
    // Writing to a string does not fail.
    let _ = match name.as_str() {
        "" => writeln!(line, "owner {} {kind}", owner.0),
        name => writeln!(line, "owner {} {kind} {}", owner.0, one_line(name)),
    };
}

fn write_row(line: &mut String, about: Word, event: &Event, text: &str) {
    let row = ROWS.iter().find(|row| row.about == about).expect("every kind of event has a row");
    line.push_str(row.word);
    for field in row.fields {
        let Event { block, stream, owner, site, .. } = event;
        let _ = match field {
            Time => write!(line, " {}", event.time_ns),
            Block => write!(line, " {}", block.sequence()),
            Requested => write!(line, " {}", event.requested),
            Granted => write!(line, " {}", event.granted),
            Address => write!(line, " {:#x}", event.address),
            Field::Owner => write!(line, " {}", owner.0),
            Field::Stream => write!(line, " {}", stream.0),
            Cell => write!(line, " {}", site.cell),
            LineNo => write!(line, " {}", site.line),
            Text if text.is_empty() => Ok(()),
            Text => write!(line, " {}", one_line(text)),
        };
    }
    line.push('\n');
}

/// A name must not end the line that it stands in.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::EVENT_KINDS;

    #[test]
    fn every_kind_of_event_has_one_row() {
        let kinds: HashSet<_> = ROWS.iter().map(|row| format!("{:?}", row.about)).collect();
        assert_eq!((ROWS.len(), kinds.len()), (EVENT_KINDS + 1, EVENT_KINDS + 1));
        let text_last = |row: &Row| row.fields.iter().rev().skip(1).all(|field| *field != Text);
        assert!(ROWS.iter().all(text_last), "a text runs to the end of its line");
    }

    #[test]
    fn numbers_and_their_ends() {
        let read = |line: &str| parse(line.as_bytes()).map(|line| format!("{line:?}"));
        assert!(read("alloc 1 2 18446744073709551615").is_ok());
        for (line, words) in [
            ("alloc 1 2 18446744073709551616", "beyond 64 bits"),
            ("alloc 1 2", "missing"),
            ("alloc 1  2", "missing"),
            ("alloc 1 2 x", "not a number"),
            ("free 1 2 3 4", "more than"),
            ("alloc 1 2 3 4 5 6 7 4294967296 1", "32 bits"),
            ("device", "missing"),
        ] {
            assert!(read(line).expect_err(line).contains(words), "{line}");
        }
        assert_eq!(parse(b"a word of later writers"), Ok(Line::Nothing));
    }
}
