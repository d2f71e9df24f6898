//! Looking at the device: `%smi`, `%device`, `%expect`.

use super::{Command, Completing, Effect, Refusal, nothing};
use crate::event::Content;
use crate::expect;
use crate::report::{mib, mib_short, percent};
use crate::session::Session;
use crate::sink::Sink;
use vramlab_runtime::SmiReport;

pub static COMMANDS: &[Command] = &[
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
    let line = |text: String| {
        let cut: String = text.chars().take(SMI_WIDTH - 2).collect();
        format!("| {cut:<width$} |", width = SMI_WIDTH - 2)
    };
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
    ];
    for (pid, name, bytes) in processes(session, &smi) {
        lines.push(line(format!("{pid:>10}   {name:<34} {:>22}", whole(bytes))));
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
    if smi.guest_bytes > 0 {
        lines.push(format!(" guests beside our pool: {} (%guest)", mib(smi.guest_bytes)));
    }
    lines.push(format!(" {}", why_they_differ(session)));
    lines.join("\n")
}

/// Every process at the device with its bytes, as a tool outside sees them: a guest's are its process's.
fn processes(session: &Session, smi: &SmiReport) -> Vec<(String, String, u64)> {
    let own = (smi.pid.to_string(), session.process.clone(), smi.held_bytes + smi.guest_bytes);
    let company = session.context.company().and_then(Result::ok).unwrap_or_default();
    let others = company.peers.into_iter().filter(|peer| !peer.own);
    let others = others.map(|peer| (peer.pid.to_string(), peer.name, peer.held));
    std::iter::once(own).chain(others).collect()
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
    if let Some(line) = super::company_line(session) {
        sink.say(line);
    }
    if let Some(path) = session.context.ledger_path() {
        sink.say(format!("its ledger is {}", path.display()));
    }
    for remark in session.context.device_remarks() {
        sink.say(remark);
    }
    Ok(Effect::Told)
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
