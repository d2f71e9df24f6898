//! Device memory now and before: `%mem` with its views.

use super::{Command, Completing, Effect, Refusal};
use crate::config::unknown;
use crate::event::Table;
use crate::pictures::{self, Asked, Scale};
use crate::report::{mib, percent};
use crate::session::Session;
use crate::sink::Sink;
use vramlab_memory::nearest;
use vramlab_runtime::BufferReport;

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

fn vars(session: &Session) -> Table {
    let mut table = Table::new(&["owner", ">MiB", ">in use", ">blocks", "made in"]);
    let owners = session.context.owners();
    for owner in &owners {
        let place = match owner.cell {
            0 => String::new(),
            cell => format!("cell {cell}, line {}", owner.line.max(1)),
        };
        table.row([
            owner.owner.clone(),
            mib(owner.requested),
            mib(owner.bytes),
            owner.blocks.to_string(),
            place,
        ]);
    }
    if owners.is_empty() {
        table.note("no array is alive");
    }
    table
}

fn who(session: &Session, asked: &str, sink: &mut Sink) -> Result<(), Refusal> {
    let buffers = session.context.buffers();
    let found: Vec<&BufferReport> = match address_of(asked) {
        Some(address) => buffers
            .iter()
            .filter(|buffer| {
                (buffer.address..buffer.address + buffer.granted.max(1)).contains(&address)
            })
            .collect(),
        None => buffers.iter().filter(|buffer| holds(buffer, asked)).collect(),
    };
    if found.is_empty() {
        return Err(nobody(asked, &buffers));
    }
    for buffer in found {
        let mut line = format!(
            "{} {}   {} at {:#x}",
            buffer.holders.join(", "),
            buffer.ty,
            mib(buffer.requested),
            buffer.address
        );
        if let Some(region) = buffer.region {
            line.push_str(&format!(", region {}", region + 1));
        }
        if buffer.origin.cell > 0 {
            let place = (buffer.origin.cell, buffer.origin.span.line.max(1));
            line.push_str(&format!("   made in cell {}, line {}", place.0, place.1));
        }
        sink.say(line);
    }
    Ok(())
}

fn address_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `params` holds `params[3]` too.
fn holds(buffer: &BufferReport, name: &str) -> bool {
    buffer.holders.iter().any(|holder| {
        holder == name || holder.strip_prefix(name).is_some_and(|rest| rest.starts_with(['[', '.']))
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
