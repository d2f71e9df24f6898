//! Device memory now and before: `%mem` with its views.

use super::{Command, Completing, Effect, Refusal};
use crate::config::unknown;
use crate::event::Table;
use crate::pictures::{self, Asked, Scale};
use crate::report::{mib, mib_short, percent, size};
use crate::session::Session;
use crate::sink::Sink;
use std::collections::HashMap;
use vramlab_memory::{ChunkState, nearest};
use vramlab_runtime::{BufferReport, ChunkReport};

pub static COMMANDS: &[Command] = &[Command {
    name: "mem",
    arguments: "[map | timeline [CELL] [time] | fragmentation | vars | who NAME|ADDRESS]",
    help: "Device memory: figures, the map of the pool, its course over cells, bytes by owner, holders.",
    example: "%mem vars",
    complete: Completing::Words(&VIEWS),
    action: mem,
    ..Command::BASE
}];

const VIEWS: [&str; 5] = ["map", "timeline", "fragmentation", "vars", "who"];

fn mem(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let (word, rest) = crate::parts::cut_word(arguments);
    match word {
        "" => sink.table(figures(session)),
        "map" => sink.show(pictures::map_content(&session.context, session.columns)),
        "timeline" => timeline(session, rest, sink)?,
        "fragmentation" => sink.show(pictures::fragmentation(&asked(session))),
        "vars" => sink.table(vars(session)),
        "who" => who(session, rest, sink)?,
        other => return Err(Refusal::new(unknown("view of memory", other, VIEWS))),
    }
    Ok(Effect::Told)
}

fn asked(session: &Session) -> Asked<'_> {
    Asked { context: &session.context, past: &session.past, columns: session.columns }
}

/// `%mem timeline`, `%mem timeline 7`, `%mem timeline 7 time`.
fn timeline(session: &Session, arguments: &str, sink: &mut Sink) -> Result<(), Refusal> {
    let (mut cell, mut scale) = (None, Scale::Events);
    for word in arguments.split_whitespace() {
        match word.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(number) => cell = Some(number),
            Err(_) if word == "time" => scale = Scale::Time,
            Err(_) => {
                let help = "write %mem timeline, %mem timeline 7, or %mem timeline 7 time";
                return Err(Refusal::new(format!("`{word}` is no cell")).help(help));
            }
        }
    }
    sink.show(pictures::timeline(&asked(session), cell, scale)?);
    Ok(())
}

/// In the order of inclusion: arrays ≤ in use ≤ pool ≤ limit ≤ device.
fn figures(session: &Session) -> Table {
    let now = session.context.report();
    let figures = &now.figures;
    let mut table = Table::new(&["figure", ">MiB", ">bytes", ""]);
    let mut row = |name: &str, bytes: u64, note: String| {
        table.row([name.to_string(), mib(bytes), bytes.to_string(), note]);
    };
    row("arrays", figures.requested_bytes, format!("{} live", figures.live_arrays));
    row("in use", figures.bytes_in_use, format!("slack {}", mib(now.slack_bytes)));
    row("peak", figures.peak_bytes_in_use, "since the start or reset_peak()".into());
    row("pool", figures.pool_bytes, format!("{} regions", now.regions.len()));
    row("limit", figures.bytes_limit, now.mode.clone());
    row("device", figures.device_bytes, now.device.clone());
    let host = session.context.host_memory();
    if host.peak_bytes_in_use > 0 {
        let note =
            format!("pinned_host, of offloaded values; peak {}", mib(host.peak_bytes_in_use));
        row("host", host.bytes_in_use, note);
    }
    let fragmentation = format!("fragmentation {}", percent(figures.fragmentation));
    row("largest free", figures.largest_free_block_bytes, fragmentation);
    table.note(format!(
        "allocs {}, frees {}   driver allocs {}, frees {}   retries {}",
        figures.num_allocs,
        figures.num_frees,
        figures.driver_allocs,
        figures.driver_frees,
        now.retries
    ));
    for (mode, bytes) in &now.older_pools {
        table.note(format!("an older pool ({mode}) still holds {}", mib(*bytes)));
    }
    table.note(now.allocator.clone());
    table
}

/// Bytes by owner, largest first; who else holds them stands beside.
fn vars(session: &Session) -> Table {
    let mut table = Table::new(&["owner", ">MiB", ">in use", ">blocks", "made in", "also held by"]);
    let owners = session.context.owners();
    let mut others: HashMap<String, Vec<String>> = HashMap::new();
    for buffer in session.context.buffers() {
        let also = others_of(&buffer);
        let known = others.entry(buffer.owner).or_default();
        for other in also {
            if known.len() <= MOST_HOLDERS && !known.contains(&other) {
                known.push(other);
            }
        }
    }
    for owner in owners.iter().take(MOST_OWNERS) {
        let also = others.get(&owner.owner).map_or(&[][..], |also| also);
        table.row([
            owner.owner.clone(),
            mib(owner.requested),
            mib(owner.bytes),
            owner.blocks.to_string(),
            place(owner.cell, owner.line),
            short_list(also),
        ]);
    }
    if owners.len() > MOST_OWNERS {
        let rest = &owners[MOST_OWNERS..];
        let bytes: u64 = rest.iter().map(|owner| owner.requested).sum();
        table.note(format!("{} more owners, {}", rest.len(), size(bytes)));
    }
    if owners.is_empty() {
        table.note("no array is alive");
    }
    table
}

const MOST_OWNERS: usize = 60;
const MOST_HOLDERS: usize = 4;

fn short_list(names: &[String]) -> String {
    match names.len() {
        0..=MOST_HOLDERS => names.join(", "),
        _ => format!("{}, …", names[..MOST_HOLDERS].join(", ")),
    }
}

fn place(cell: u32, line: u32) -> String {
    match cell {
        0 => String::new(),
        cell => format!("cell {cell}, line {}", line.max(1)),
    }
}

/// The holders of a buffer beside its owner, each as often as it holds it.
fn others_of(buffer: &BufferReport) -> Vec<String> {
    let mut others = buffer.holders.clone();
    if let Some(own) = others.iter().position(|holder| *holder == buffer.owner) {
        others.remove(own);
    }
    others
}

fn who(session: &Session, asked: &str, sink: &mut Sink) -> Result<(), Refusal> {
    let buffers = session.context.buffers();
    let chunks = session.context.chunks();
    if let Some(address) = address_of(asked) {
        let here =
            |chunk: &&ChunkReport| (chunk.address..chunk.address + chunk.bytes).contains(&address);
        let Some(chunk) = chunks.iter().find(here) else {
            return Err(Refusal::new(format!("`{asked}` lies outside the pool")));
        };
        let buffer =
            buffers.iter().find(|buffer| buffer.granted > 0 && buffer.address == chunk.address);
        match buffer {
            Some(buffer) => sink.say(chain(session, buffer, Some(chunk))),
            None => sink.say(free_or_unnamed(chunk)),
        }
        return Ok(());
    }
    let found: Vec<&BufferReport> = buffers.iter().filter(|buffer| holds(buffer, asked)).collect();
    if found.is_empty() {
        return Err(nobody(asked, &buffers));
    }
    for buffer in found.iter().take(MOST_OWNERS) {
        let chunk = chunks.iter().find(|chunk| chunk.address == buffer.address);
        sink.say(chain(session, buffer, chunk.filter(|_| buffer.granted > 0)));
    }
    if found.len() > MOST_OWNERS {
        sink.say(format!("{} more arrays", found.len() - MOST_OWNERS));
    }
    Ok(())
}

/// Holders, array, buffer, chunk, region.
fn chain(session: &Session, buffer: &BufferReport, chunk: Option<&ChunkReport>) -> String {
    let mut line = format!(
        "{} {}   {} at {:#x}",
        buffer.holders.join(", "),
        buffer.ty,
        mib(buffer.requested),
        buffer.address
    );
    if let Some(chunk) = chunk {
        line.push_str(&format!(", chunk {}", mib(chunk.bytes)));
        if chunk.bytes > chunk.requested {
            line.push_str(&format!(" (slack {})", mib(chunk.bytes - chunk.requested)));
        }
    }
    if let Some(index) = buffer.region {
        let regions = session.context.report().regions;
        let size = regions.get(index).map_or(0, |region| region.bytes);
        line.push_str(&format!(", region {} of {}", index + 1, mib_short(size)));
    }
    let made = place(buffer.origin.cell, buffer.origin.span.line);
    if !made.is_empty() {
        line.push_str(&format!("   made in {made}"));
    }
    line
}

fn free_or_unnamed(chunk: &ChunkReport) -> String {
    let region = chunk.region.map_or(0, |region| region + 1);
    let owner = match (&chunk.owner, chunk.state) {
        (Some(owner), _) => owner.clone(),
        (None, ChunkState::Pending) => "freed, not yet ready".into(),
        (None, _) => "free".into(),
    };
    format!("{owner}   {} at {:#x}, region {region}", mib(chunk.bytes), chunk.address)
}

fn address_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `params` holds `params[3]` too, and a function what it captured.
fn holds(buffer: &BufferReport, name: &str) -> bool {
    let is_part = |holder: &str| {
        holder
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
    };
    buffer.holders.iter().any(|holder| {
        let of_function = holder.rsplit_once(" of ").is_some_and(|(_, function)| function == name);
        of_function || is_part(holder)
    })
}

fn nobody(asked: &str, buffers: &[BufferReport]) -> Refusal {
    if asked.is_empty() {
        return Refusal::new("who? write %mem who NAME or %mem who 0xADDRESS");
    }
    let mut names: Vec<&str> =
        buffers.iter().flat_map(|buffer| &buffer.holders).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let near = nearest(asked, names.iter().copied());
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Refusal::new(format!("no live array is held by or lies at `{asked}`{near}"))
}
