//! The instant tier's side of the comparison: the cells through a session.

use super::corpus::Source;
use super::rustc::Output;
use vramlab_session::{CellResult, Config, Event, Session, Status};

/// A session as rustc's program has its engine: 1 GiB, everything else by default.
fn session() -> Session {
    let capacity = Some("1GiB".to_string());
    Session::new(Config { capacity, ..Config::default() }).expect("a session")
}

/// What a cell printed, with its value as a line of its own.
fn execute(session: &mut Session, cell: &str) -> (String, CellResult) {
    let mut text = String::new();
    let result = session.execute(cell, &mut |event| match event {
        Event::Stdout(written) => text.push_str(&written),
        Event::Value { content, .. } | Event::Display { content, .. } => {
            text.push_str(&content.text);
            text.push('\n');
        }
        _ => {}
    });
    (text, result)
}

/// Runs a file's cells up to the first that fails: what they printed.
pub fn run(source: &Source) -> Output {
    let mut session = session();
    let mut output = Output::default();
    for cell in &source.cells {
        let (text, result) = execute(&mut session, cell);
        output.text.push_str(&text);
        if let Some(error) = result.error {
            output.fault = Some(error.message);
            break;
        }
    }
    output
}

/// Whether the last cell is refused with one of the expected codes, by the check alone: what
/// earlier cells made is as it was. In words, how it is not.
pub fn refuse(source: &Source) -> Result<(), String> {
    refused_as(source, |kind| {
        let is_code = kind.len() == 5 && kind.starts_with('E');
        source.expect.contains(kind) || (source.expect.contains("none") && !is_code)
    })
}

/// The same of bodies with several faults. rustc keeps back that a type is not known when it has
/// said anything else, and tells of a place that is borrowed twice only once; and the instant tier
/// may leave a body to rustc.
pub fn refuse_one_of_many(source: &Source) -> Result<(), String> {
    let borrows = ["E0499", "E0502"];
    refused_as(source, |kind| {
        source.expect.contains(kind)
            || matches!(kind, "E0282" | "E0283" | "unsupported")
            || (borrows.contains(&kind) && borrows.iter().any(|code| source.expect.contains(*code)))
    })
}

fn refused_as(source: &Source, fits: impl Fn(&str) -> bool) -> Result<(), String> {
    let mut session = session();
    let (last, earlier) = source.cells.split_last().expect("a file has a cell");
    for cell in earlier {
        let (_, result) = execute(&mut session, cell);
        if let Some(error) = result.error {
            return Err(format!("an earlier cell failed\n{}", error.rendered));
        }
    }
    let before = state(&mut session);
    let (text, result) = execute(&mut session, last);
    if result.status != Status::Error {
        return Err(format!("was accepted and printed {text:?}"));
    }
    if !text.is_empty() {
        return Err(format!("printed {text:?} before it failed"));
    }
    let error = result.error.expect("a failed cell has an error");
    if !fits(&error.kind) {
        return Err(format!("expected {:?}\n{}", source.expect, error.rendered));
    }
    if error.span.is_none() {
        return Err(format!("points nowhere\n{}", error.rendered));
    }
    let after = state(&mut session);
    match before == after {
        true => Ok(()),
        false => Err(format!("left another state: {before:?}, then {after:?}")),
    }
}

/// The variables and what they hold of the device.
fn state(session: &mut Session) -> (String, u64) {
    let (text, result) = execute(session, "%vars");
    (text, result.memory.bytes_in_use)
}
