//! Looking at the device: `%mem`, `%smi`, `%device`, `%why`, `%expect`.

use super::{Command, Completing, Effect, Refusal, nothing};
use crate::config::unknown;
use crate::event::{Content, Table};
use crate::expect;
use crate::measure;
use crate::oom;
use crate::report::{mib, mib_short, percent};
use crate::session::Session;
use crate::sink::Sink;
use vramlab_memory::nearest;
use vramlab_runtime::BufferReport;

pub static COMMANDS: &[Command] = &[
    Command {
        name: "mem",
        arguments: "[map | vars | who NAME|ADDRESS]",
        help: "Device memory now: figures, the map of the pool, bytes by owner, holders.",
        example: "%mem vars",
        complete: Completing::Words(&["map", "vars", "who"]),
        action: mem,
        ..Command::BASE
    },
    Command {
        name: "smi",
        help: "The device in nvidia-smi's layout beside our own figures, and why they differ.",
        example: "%smi",
        action: smi,
        ..Command::BASE
    },
    Command {
        name: "device",
        help: "The device: its size, what computes, whether it carries data.",
        example: "%device",
        action: device,
        ..Command::BASE
    },
    Command {
        name: "why",
        help: "Explains the last failure, or why the last cell's memory is what it is.",
        example: "%why",
        action: why,
        ..Command::BASE
    },
    Command {
        name: "expect",
        arguments: "FIGURE<=BOUND [, …]",
        help: "Fails the cell unless it is so; alone, judges the cell before.",
        example: "%expect peak<=128MiB",
        complete: Completing::Figures,
        check: Some(|arguments| expect::parse(arguments).map(|_| ()).map_err(Refusal::new)),
        action: expect_,
        ..Command::BASE
    },
];

fn mem(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let (word, rest) = crate::parts::cut_word(arguments);
    match word {
        "" => sink.table(figures(session)),
        "map" => map(session, sink),
        "vars" => sink.table(vars(session)),
        "who" => who(session, rest, sink)?,
        other => {
            return Err(Refusal::new(unknown("view of memory", other, ["map", "vars", "who"])));
        }
    }
    Ok(Effect::Told)
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

fn map(session: &Session, sink: &mut Sink) {
    let chunks = session.context.chunks();
    let regions = session.context.report().regions;
    let mut table =
        Table::new(&["region", ">address", ">MiB", ">in use", "█ in use  ▒ partly  · free"]);
    for (index, region) in regions.iter().enumerate() {
        let own: Vec<_> =
            chunks.iter().filter(|chunk| chunk.region == Some(index)).cloned().collect();
        table.row([
            (index + 1).to_string(),
            format!("{:#x}", region.base),
            mib(region.bytes),
            mib(region.bytes_in_use),
            measure::strip(&own, measure::STRIP / 2),
        ]);
    }
    if regions.is_empty() {
        table.note("the pool is empty: nothing was taken from the device yet");
    }
    sink.table(table);
    if chunks.is_empty() {
        return;
    }
    let mut table = Table::new(&[">address", ">MiB", ">region", "owner"]);
    for chunk in chunks.iter().take(MOST_CHUNKS) {
        table.row([
            format!("{:#x}", chunk.address),
            mib(chunk.bytes),
            chunk.region.map_or(String::new(), |region| (region + 1).to_string()),
            chunk.owner.clone().unwrap_or_else(|| "free".into()),
        ]);
    }
    if chunks.len() > MOST_CHUNKS {
        table.note(format!("{} more chunks", chunks.len() - MOST_CHUNKS));
    }
    sink.table(table);
}

const MOST_CHUNKS: usize = 40;

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

fn smi(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    nothing("smi", arguments)?;
    sink.show(Content::of_text(smi_text(session)));
    Ok(Effect::Told)
}

/// The width of nvidia-smi's box.
const SMI_WIDTH: usize = 89;

fn smi_text(session: &Session) -> String {
    let smi = session.context.smi();
    let whole = |bytes: u64| format!("{}MiB", bytes.div_ceil(1 << 20));
    let edge = |fill: &str| format!("+{}+", fill.repeat(SMI_WIDTH));
    let line = |text: String| format!("| {text:<width$} |", width = SMI_WIDTH - 2);
    let head = format!(
        "VRAMLAB-SMI {:<20} Device: {} ({})",
        env!("CARGO_PKG_VERSION"),
        smi.device,
        session.context.device_description()
    );
    let used = format!("{} / {}", whole(smi.held_bytes + smi.other_bytes), whole(smi.total_bytes));
    let busy = percent((smi.held_bytes + smi.other_bytes) as f64 / smi.total_bytes.max(1) as f64);
    let mut lines = vec![
        edge("-"),
        line(head),
        edge("-"),
        line(format!("{:<40} {:>22}   {:>12}", "Device  Name", "Memory-Usage", "Memory-Util")),
        edge("="),
        line(format!("{:<40} {used:>22}   {busy:>12}", format!("     0  {}", smi.device))),
        edge("-"),
        line("Processes:".into()),
        line(format!("{:>10}   {:<34} {:>22}", "PID", "Process name", "Memory Usage")),
        edge("="),
        line(format!("{:>10}   {:<34} {:>22}", smi.pid, "vramlab", whole(smi.held_bytes))),
    ];
    if smi.other_bytes > 0 {
        let others = whole(smi.other_bytes);
        lines.push(line(format!("{:>10}   {:<34} {others:>22}", "-", "other processes")));
    }
    lines.push(edge("-"));
    let (held, total) = (mib_short(smi.held_bytes), mib_short(smi.total_bytes));
    let was = match &session.before_switch {
        Some((mode, bytes)) if *bytes != smi.held_bytes => {
            format!("   was {} under {mode}", mib_short(*bytes))
        }
        _ => String::new(),
    };
    let differ = if was.is_empty() { "" } else { ": reserved ≠ used" };
    lines.push(format!(" vramlab (pid {})  {held} / {total} MiB{was}{differ}", smi.pid));
    let figures = &smi.figures;
    lines.push(format!(
        " inside: arrays {}   in use {}   pool {}   ({})",
        mib(figures.requested_bytes),
        mib(figures.bytes_in_use),
        mib(figures.pool_bytes),
        smi.mode
    ));
    lines.push(format!(" {}", why_they_differ(session)));
    lines.join("\n")
}

fn why_they_differ(session: &Session) -> String {
    let now = session.context.report();
    let (pool, used) = (now.figures.pool_bytes, now.figures.bytes_in_use);
    match (pool, used) {
        (0, _) => "nothing is held yet: the first allocation takes from the device".into(),
        (pool, used) if pool == used => {
            "both agree: this mode holds exactly what is in use".to_string()
        }
        (pool, used) => format!(
            "a tool outside sees the pool, {}; {} of it is free for the next array, and no other process can have it",
            mib(pool),
            mib(pool - used)
        ),
    }
}

fn device(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if !arguments.is_empty() {
        return Err(Refusal::new("the device is chosen when the session starts")
            .help(format!("start again with: vramlab --device {arguments}")));
    }
    let context = &session.context;
    let mode = context.mode();
    sink.say(format!("{}   {}", context.device_name(), context.device_description()));
    sink.say(format!("computes on {}", context.processor()));
    sink.say(format!("mode {mode}   {}", context.report().allocator));
    if let Some(reason) = context.capacity_reason() {
        sink.say(reason);
    }
    Ok(Effect::Told)
}

fn why(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    nothing("why", arguments)?;
    let failed_last = session.past.last().is_some_and(|past| past.status != crate::Status::Ok);
    match (&session.last_error, session.context.last_oom()) {
        (Some(last), Some(report)) if last.is_out_of_memory => {
            sink.say(format!("cell {}: {}", last.error.cell, last.error.message));
            sink.say(oom::explain(&report));
        }
        (Some(last), _) if failed_last => {
            sink.say(format!("cell {} failed:", last.error.cell));
            sink.say(&last.error.rendered);
        }
        _ => why_memory(session, sink),
    }
    Ok(Effect::Told)
}

/// What the last cell that ran did to the device, in sentences.
fn why_memory(session: &Session, sink: &mut Sink) {
    let report = &session.last_report;
    if report.cell == 0 {
        sink.say("no cell has run yet");
        return;
    }
    sink.say(format!(
        "cell {}: {} allocations, {} frees; the arrays went from {} to {}, with a peak of {}",
        report.cell,
        report.num_allocs_cell,
        report.num_frees_cell,
        mib((report.requested_bytes as i64 - report.delta_bytes).max(0) as u64),
        mib(report.requested_bytes),
        mib(report.peak_requested_bytes_cell)
    ));
    let extra = report.peak_requested_bytes_cell.saturating_sub(report.requested_bytes);
    if extra > 0 {
        sink.say(format!("the peak holds {} of temporaries that are gone again", mib(extra)));
    }
    if report.slack_bytes() > 0 {
        sink.say(format!(
            "in use is {} above the arrays: the allocator hands out whole chunks ({})",
            mib(report.slack_bytes()),
            report.mode
        ));
    }
    let free = report.pool_bytes.saturating_sub(report.bytes_in_use);
    if free > 0 {
        sink.say(format!("the pool keeps {} free: reserved, and nobody else's", mib(free)));
    }
    if let Some((owner, bytes)) = report.variables.first() {
        sink.say(format!("the largest owner is {owner} with {}", mib(*bytes)));
    }
}

fn expect_(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let expectations = expect::parse(arguments)?;
    if session.running.has_deeds {
        session.running.expectations.extend(expectations);
        return Ok(Effect::Told);
    }
    if session.last_report.cell == 0 {
        return Err(Refusal::new("no cell has run yet, so there is nothing to judge"));
    }
    for expectation in expectations {
        match expectation.check(&session.last_report) {
            Ok(line) => sink.say(format!("cell {}: {line}", session.last_report.cell)),
            Err(why) => {
                let why = format!("cell {}: {why}", session.last_report.cell);
                return Err(Refusal { kind: "expect", ..Refusal::new(why) });
            }
        }
    }
    Ok(Effect::Told)
}
