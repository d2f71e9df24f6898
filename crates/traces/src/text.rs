//! Reports in words and as JSON.

use crate::replay::{Replayed, Row, SizeFrom};
use crate::view::{Moment, Owned, View};
use serde_json::{Value, json};
use std::fmt;
use vramlab_memory::format_bytes;

/// How many owners a report prints.
const OWNERS: usize = 10;
/// How many segments it prints.
const SEGMENTS: usize = 8;
/// How many lines of a stack it prints.
const LINES: usize = 4;

/// A count with its thousands parted.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut parted = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    parted
}

pub(crate) fn part(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Rows of cells, each column as wide as its widest; the first to the left, the rest to the right.
fn table(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(width(column).unwrap_or(0) - cell.chars().count());
            let left = column < 2;
            let gap = if column == 0 { "" } else { "  " };
            line.push_str(&match left {
                true => format!("{gap}{cell}{pad}"),
                false => format!("{gap}{pad}{cell}"),
            });
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replayed { file, format, device, .. } = self;
        writeln!(f, "{file}: {}, device {device}, {} events", format.words(), count(self.events))?;
        let from = match self.size_from {
            SizeFrom::Asked => "",
            SizeFrom::Recorded => " (as recorded)",
            SizeFrom::Assumed => " (assumed: the recording does not say; --capacity sets it)",
        };
        let start = match self.start_blocks {
            0 => String::new(),
            blocks => format!(", {} blocks out at its start", count(blocks)),
        };
        let (size, peak) = (format_bytes(self.capacity), format_bytes(self.peak_requested));
        writeln!(f, "on a device of {size}{from}; at most {peak} asked for at once{start}")?;
        let mut rows = vec![HEADINGS.map(str::to_string).to_vec()];
        rows.extend(self.rows.iter().map(cells));
        table(f, &rows)?;
        for row in self.rows.iter().filter(|row| row.failure.is_some()) {
            let Some(failure) = &row.failure else { continue };
            writeln!(f, "{}: {}: {}", row.outcome.mode, failure.verdict, failure.facts)?;
        }
        notes(f, &self.notes)
    }
}

const HEADINGS: [&str; 7] = [
    "mode",
    "result",
    "peak in use",
    "pool",
    "fragmentation at peak",
    "driver calls",
    "smallest device",
];

fn cells(row: &Row) -> Vec<String> {
    let outcome = &row.outcome;
    let result = match &row.failure {
        None => "passes".to_string(),
        Some(failure) => {
            let asked = format_bytes(failure.asked);
            format!("OOM at event {}: {asked} asked", count(failure.event))
        }
    };
    let smallest = match row.smallest {
        None => "not found".to_string(),
        Some(smallest) if smallest.exact => format_bytes(smallest.bytes),
        Some(smallest) => format!("≤ {}", format_bytes(smallest.bytes)),
    };
    vec![
        outcome.mode.to_string(),
        result,
        format_bytes(outcome.peak_in_use),
        format_bytes(outcome.peak_pool),
        part(outcome.fragmentation_at_peak),
        count(outcome.driver_calls),
        smallest,
    ]
}

fn notes(f: &mut fmt::Formatter<'_>, notes: &[String]) -> fmt::Result {
    notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
}

impl Replayed {
    /// Everything on one line of JSON.
    pub fn json_line(&self) -> String {
        let from = match self.size_from {
            SizeFrom::Asked => "asked",
            SizeFrom::Recorded => "recorded",
            SizeFrom::Assumed => "assumed",
        };
        json!({
            "file": self.file,
            "format": self.format.key(),
            "device": self.device,
            "events": self.events,
            "start_blocks": self.start_blocks,
            "peak_requested_bytes": self.peak_requested,
            "capacity_bytes": self.capacity,
            "capacity_from": from,
            "modes": self.rows.iter().map(row_json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
        .to_string()
    }
}

fn row_json(row: &Row) -> Value {
    let outcome = &row.outcome;
    let failure = row.failure.as_ref().map(|failure| {
        json!({
            "event": failure.event,
            "asked_bytes": failure.asked,
            "verdict": failure.verdict,
            "facts": failure.facts,
        })
    });
    json!({
        "mode": outcome.mode.to_string(),
        "passes": outcome.passes(),
        "failure": failure,
        "peak_bytes_in_use": outcome.peak_in_use,
        "peak_pool_bytes": outcome.peak_pool,
        "fragmentation_at_peak": outcome.fragmentation_at_peak,
        "driver_calls": outcome.driver_calls,
        "smallest_device_bytes": row.smallest.map(|smallest| smallest.bytes),
        "smallest_device_exact": row.smallest.map(|smallest| smallest.exact),
        "strays": outcome.strays,
    })
}

impl View {
    /// Nanoseconds since the first event.
    fn since_start(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.time_ns.0)
    }

    /// Everything on one line of JSON.
    pub fn json_line(&self) -> String {
        json!({
            "file": self.file,
            "format": self.format.key(),
            "device": self.device,
            "device_name": self.device_name,
            "capacity_bytes": self.capacity,
            "settings": self.settings,
            "events": self.events,
            "allocs": self.allocs,
            "frees": self.frees,
            "ooms": self.ooms,
            "start_blocks": self.start_blocks,
            "start_bytes": self.start_bytes,
            "duration_ns": self.since_start(self.time_ns.1),
            "peak_reserved_bytes": self.peak_reserved,
            "peak": self.moment_json(&self.peak),
            "end": self.moment_json(&self.end),
            "addresses_predicted": self.prediction.as_ref().map(|found| found.right),
            "notes": self.notes,
        })
        .to_string()
    }

    fn moment_json(&self, moment: &Moment) -> Value {
        let owner = |owned: &Owned| json!({ "bytes": owned.bytes, "blocks": owned.blocks, "frames": owned.lines });
        let segments = moment.segments.iter().map(|segment| {
            json!({
                "base": segment.base,
                "bytes": segment.bytes,
                "bytes_in_use": segment.in_use,
                "blocks": segment.blocks.len(),
                "largest_free_block_bytes": segment.largest_free,
            })
        });
        json!({
            "event": moment.event,
            "since_start_ns": self.since_start(moment.time_ns),
            "requested_bytes": moment.requested,
            "reserved_bytes": moment.reserved,
            "blocks": moment.blocks,
            "fragmentation": moment.fragmentation,
            "owners": moment.owners.iter().map(owner).collect::<Vec<_>>(),
            "segments": segments.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View { file, format, device, .. } = self;
        write!(f, "{file}: {}, device {device}", format.words())?;
        if let Some(name) = &self.device_name {
            write!(f, " ({name})")?;
        }
        if let Some(capacity) = self.capacity {
            write!(f, " of {}", format_bytes(capacity))?;
        }
        let (allocs, frees) = (count(self.allocs), count(self.frees));
        writeln!(f, ", {} events: {allocs} allocations, {frees} frees", count(self.events))?;
        if let Some(settings) = &self.settings {
            writeln!(f, "settings       {settings}")?;
        }
        if self.start_blocks > 0 {
            let (blocks, bytes) = (count(self.start_blocks), format_bytes(self.start_bytes));
            writeln!(f, "at the start   {bytes} in {blocks} blocks")?;
        }
        let at = seconds(self.since_start(self.peak.time_ns));
        let peak = format_bytes(self.peak.requested);
        let event = count(self.peak.event);
        writeln!(
            f,
            "peak           {peak} ({} bytes) at event {event}, {at}",
            self.peak.requested
        )?;
        self.moment(f, &self.peak)?;
        if self.peak_reserved > 0 {
            writeln!(f, "peak reserved  {}", format_bytes(self.peak_reserved))?;
        }
        writeln!(
            f,
            "at the end     {} in {} blocks",
            format_bytes(self.end.requested),
            count(self.end.blocks)
        )?;
        self.moment(f, &self.end)?;
        if let Some((event, bytes)) = self.first_oom {
            let (event, bytes) = (count(event), format_bytes(bytes));
            writeln!(
                f,
                "failed         {} requests, first {bytes} at event {event}",
                count(self.ooms)
            )?;
        }
        if let Some(found) = &self.prediction {
            let (right, all) = (count(found.right), count(found.allocs));
            writeln!(
                f,
                "placement      {right} of {all} addresses are where PyTorch's rules put them"
            )?;
        }
        self.owners(f)?;
        self.segments(f)?;
        notes(f, &self.notes)
    }
}

/// A time since the start.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

impl View {
    fn moment(&self, f: &mut fmt::Formatter<'_>, moment: &Moment) -> fmt::Result {
        let Some(fragmentation) = moment.fragmentation else { return Ok(()) };
        let free: u64 = moment.segments.iter().map(|segment| segment.bytes - segment.in_use).sum();
        let largest = moment.segments.iter().map(|segment| segment.largest_free).max().unwrap_or(0);
        let (reserved, segments) =
            (format_bytes(moment.reserved), count(moment.segments.len() as u64));
        let (free, largest) = (format_bytes(free), format_bytes(largest));
        writeln!(
            f,
            "               reserved {reserved} in {segments} segments, {free} of it free, largest hole {largest}, \
             fragmentation {}",
            part(fragmentation)
        )
    }

    fn owners(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.peak.owners.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nowners at the peak")?;
        for owned in self.peak.owners.iter().take(OWNERS) {
            let share = owned.bytes as f64 / self.peak.requested.max(1) as f64;
            let blocks = if owned.blocks == 1 { "block" } else { "blocks" };
            let first = owned.lines.first().map_or("(not told)", |line| line);
            let (bytes, share) = (format_bytes(owned.bytes), part(share));
            writeln!(
                f,
                "{bytes:>12}  {share:>7}  {:>6} {blocks:<6}  {first}",
                count(owned.blocks)
            )?;
            for line in owned.lines.iter().skip(1).take(LINES - 1) {
                writeln!(f, "{:39}{line}", "")?;
            }
        }
        let rest = &self.peak.owners[OWNERS.min(self.peak.owners.len())..];
        if !rest.is_empty() {
            let bytes: u64 = rest.iter().fold(0, |sum, owned| owned.bytes.saturating_add(sum));
            writeln!(
                f,
                "{:>12}  in {} other owners",
                format_bytes(bytes),
                count(rest.len() as u64)
            )?;
        }
        Ok(())
    }

    fn segments(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.peak.segments.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nsegments at the peak, most free first")?;
        let segments = self.peak.by_free();
        let headings = ["address", "", "size", "in use", "free", "largest hole", "blocks"];
        let mut rows = vec![headings.map(str::to_string).to_vec()];
        rows.extend(segments.iter().take(SEGMENTS).map(|segment| {
            vec![
                format!("{:#x}", segment.base),
                String::new(),
                format_bytes(segment.bytes),
                format_bytes(segment.in_use),
                format_bytes(segment.bytes - segment.in_use),
                format_bytes(segment.largest_free),
                count(segment.blocks.len() as u64),
            ]
        }));
        table(f, &rows)?;
        match segments.len().saturating_sub(SEGMENTS) {
            0 => Ok(()),
            more => writeln!(f, "and {} more", count(more as u64)),
        }
    }
}
