//! One row an event.
//!
//! The columns are [`HEADER`]: the event's index since the session began, its time in nanoseconds on the session's
//! clock, its kind, the cell and line that ran, pool, stream and block by number, the address, bytes asked for and
//! held, the owner, the event's own text (a mode, a scope, a rung, a function), and the state after it: bytes that
//! arrays asked for, bytes in use, bytes of the pool. Where older events were dropped, the blocks that were live
//! then come first, as rows of kind `live` without an index.

use crate::fold::Fold;
use crate::recording::Recording;
use std::io::{self, Write};
use vramlab_memory::ledger::Event;

pub(crate) const HEADER: &str = "index,time_ns,kind,cell,line,pool,stream,block,address,requested_bytes,\
    granted_bytes,owner,text,arrays_bytes,in_use_bytes,pool_bytes";

pub(crate) fn write(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<String> {
    let ledger = recording.ledger();
    let mut fold = Fold::at_start(recording);
    writeln!(out, "{HEADER}")?;
    let checkpoint = ledger.checkpoint();
    for live in &checkpoint {
        let event = Event::making(live);
        row(recording, &fold, None, "live", &event, out)?;
    }
    for (index, event) in ledger.events().enumerate() {
        fold.apply(event);
        let index = ledger.dropped() + index as u64;
        row(recording, &fold, Some(index), event.kind.name(), event, out)?;
    }
    Ok(format!("{} events", ledger.events().len()))
}

fn row(
    recording: &Recording<'_>,
    fold: &Fold,
    index: Option<u64>,
    kind: &str,
    event: &Event,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (cell, line) = (event.site.cell, event.site.line);
    let (pool, stream, block) = (event.pool.0, event.stream.0, event.block.sequence());
    let (requested, granted) = (event.requested, event.granted);
    if let Some(index) = index {
        write!(out, "{index}")?;
    }
    write!(out, ",{},{kind},{cell},{line},{pool},{stream},{block},", event.time_ns)?;
    write!(out, "{},{requested},{granted},", event.address)?;
    let owner = if block == 0 { String::new() } else { recording.owner(event.owner) };
    field(&owner, out)?;
    out.write_all(b",")?;
    field(recording.ledger().text_of(event.text), out)?;
    writeln!(out, ",{},{},{}", fold.requested, fold.in_use, fold.pool)
}

/// A field as RFC 4180 has it: quoted only where it must be.
fn field(text: &str, out: &mut dyn Write) -> io::Result<()> {
    match text.contains([',', '"', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}
