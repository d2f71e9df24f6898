//! `%why`: the last failure, the last cell's memory, or a text that some other program left.

use super::{Command, Completing, Effect, Refusal};
use crate::report::mib;
use crate::session::{LastError, Session};
use crate::sink::Sink;
use crate::why::{read_file, why_text};
use crate::{oom, reasons};

pub static COMMANDS: &[Command] = &[Command {
    name: "why",
    arguments: "[error | memory | FILE…]",
    help: "Explains the last failure, the last cell's memory, or an out-of-memory text from elsewhere.",
    example: "%why",
    complete: Completing::Files,
    action: why,
    ..Command::BASE
}];

fn why(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    match arguments {
        "" => match session.last_error.clone() {
            // What ran well since then is the news.
            Some(last) if last.error.cell > session.last_report.cell || last.ran => {
                why_error(session, &last, sink);
            }
            last => {
                why_memory(session, sink);
                if let Some(last) = last {
                    sink.say(format!("cell {} failed before: %why error", last.error.cell));
                }
            }
        },
        "memory" => why_memory(session, sink),
        "error" => match session.last_error.clone() {
            Some(last) => why_error(session, &last, sink),
            None => sink.say("no cell has failed yet"),
        },
        files => why_files(files, sink)?,
    }
    Ok(Effect::Told)
}

fn why_error(session: &Session, last: &LastError, sink: &mut Sink) {
    match session.context.last_oom().filter(|_| last.is_out_of_memory) {
        Some(report) => {
            sink.say(format!("cell {}: {}", last.error.cell, last.error.message));
            sink.say(oom::explain(&report, last.jit_passes.as_deref()));
        }
        None => {
            sink.say(format!("cell {} failed:", last.error.cell));
            sink.say(&last.error.rendered);
            if let Some(reason) = reasons::of(&last.error.kind) {
                sink.say(format!("{}: {reason}", last.error.kind));
            }
        }
    }
}

/// As `vramlab why FILE` does it; a path with blanks is one file if there is such a file.
fn why_files(files: &str, sink: &mut Sink) -> Result<(), Refusal> {
    let whole = files.trim_matches(['"', '\'']);
    let files: Vec<&str> = match std::path::Path::new(whole).exists() {
        true => vec![whole],
        false => files.split_whitespace().collect(),
    };
    // Nothing is told unless every file can be read.
    let texts: Result<Vec<Vec<u8>>, Refusal> = files
        .iter()
        .map(|file| read_file(file).map_err(|why| Refusal::new(format!("{file}: {why}"))))
        .collect();
    let texts = texts.map_err(|refusal| {
        refusal.help("%why alone explains this session; %why FILE reads a log, a dump or a profile")
    })?;
    for (file, bytes) in files.iter().zip(texts) {
        if files.len() > 1 {
            sink.say(file);
        }
        sink.line(why_text(&bytes).to_string().trim_end());
    }
    Ok(())
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
