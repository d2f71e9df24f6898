//! Variables: `%vars`, `%whos`, `%del`, `%reset`, `%seed`.

use super::{Command, Completing, Effect, Refusal, nothing};
use crate::event::Table;
use crate::report::{mib, size};
use crate::rewrite::{out_name, out_number};
use crate::session::Session;
use crate::sink::Sink;
use crate::value;
use vramlab_array::surface::Dyn;
use vramlab_cells::Variable;
use vramlab_memory::nearest;

pub static COMMANDS: &[Command] = &[
    Command {
        name: "vars",
        aliases: &["who"],
        help: "The names of the session's variables.",
        example: "%vars",
        action: vars,
        ..Command::BASE
    },
    Command {
        name: "whos",
        help: "The session's variables with type, shape, bytes and cell.",
        example: "%whos",
        action: whos,
        ..Command::BASE
    },
    Command {
        name: "del",
        arguments: "NAME …",
        help: "Drops variables; says how much came free, or who still holds it.",
        example: "%del x",
        complete: Completing::Variables,
        changes_names: true,
        action: del,
        ..Command::BASE
    },
    Command {
        name: "reset",
        help: "Drops every variable and output.",
        example: "%reset",
        changes_names: true,
        action: reset,
        ..Command::BASE
    },
    Command {
        name: "seed",
        arguments: "NUMBER",
        help: "Seeds the random numbers, as seed(n) does.",
        example: "%seed 0",
        check: Some(|text| seed_of(text).map(|_| ())),
        action: seed,
        ..Command::BASE
    },
];

fn vars(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    nothing("vars", arguments)?;
    let names: Vec<String> = session
        .variables()
        .into_iter()
        .filter(|variable| variable.moved.is_none())
        .map(|variable| variable.name)
        .collect();
    sink.say(match names.is_empty() {
        true => "no variables yet".to_string(),
        false => names.join("  "),
    });
    Ok(Effect::Told)
}

fn whos(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    nothing("whos", arguments)?;
    let mut table = Table::new(&["name", "type", "array", ">MiB", ">cell", ""]);
    let outputs = session.outputs().into_iter().map(|(_, variable)| variable);
    for variable in session.variables().into_iter().chain(outputs) {
        let (array, bytes) = arrays_of(session, &variable);
        let name = match out_number(&variable.name) {
            Some(number) => format!("Out[{number}]"),
            None => variable.name.clone(),
        };
        let moved = match variable.moved {
            Some(cell) => format!("moved in cell {cell}"),
            None => String::new(),
        };
        let bytes = if array.is_empty() { String::new() } else { mib(bytes) };
        table.row([name, variable.ty.clone(), array, bytes, variable.cell.to_string(), moved]);
    }
    if table.rows.is_empty() {
        table.note("no variables yet");
    }
    sink.table(table);
    Ok(Effect::Told)
}

/// The type of an array, or how many arrays a value holds, and their bytes.
pub(crate) fn arrays_of(session: &Session, variable: &Variable) -> (String, u64) {
    let Some(held) = session.interpreter.value(&variable.name) else {
        return (String::new(), 0);
    };
    let mut found = Vec::new();
    value::arrays(&variable.name, &held, &mut found);
    let bytes = found.iter().map(|(_, array)| array.ty().bytes()).sum();
    let text = match (&held, found.len()) {
        (Dyn::Array(array) | Dyn::Borrowed(array), _) => array.ty().to_string(),
        (_, 0) => String::new(),
        (_, 1) => "1 array".into(),
        (_, count) => format!("{count} arrays"),
    };
    (text, bytes)
}

fn del(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let names: Vec<&str> =
        arguments.split([' ', ',', '\t']).filter(|word| !word.is_empty()).collect();
    if names.is_empty() {
        return Err(Refusal::new("delete what? write %del x"));
    }
    let known: Vec<String> =
        session.interpreter.variables().into_iter().map(|variable| variable.name).collect();
    let inner: Vec<String> = names.iter().map(|name| inner_name(name)).collect();
    for (name, inner) in names.iter().zip(&inner) {
        if !known.contains(inner) {
            let near = nearest(name, known.iter().map(String::as_str))
                .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(Refusal::new(format!("no variable `{name}`{near}")));
        }
    }
    for (name, inner) in names.iter().zip(&inner) {
        let line = del_one(session, name, inner);
        sink.say(line);
    }
    Ok(Effect::Told)
}

/// `Out[3]` may be deleted too.
fn inner_name(name: &str) -> String {
    let number = name.strip_prefix("Out[").and_then(|rest| rest.strip_suffix(']'));
    match number.and_then(|digits| digits.parse().ok()) {
        Some(number) => out_name(number),
        None => name.to_string(),
    }
}

fn del_one(session: &mut Session, name: &str, inner: &str) -> String {
    let others = other_holders(session, inner, name);
    let before = session.context.report().figures.requested_bytes;
    let held = session.interpreter.remove(inner);
    drop(held);
    let after = session.context.report().figures.requested_bytes;
    let freed = format!("{name}: {} freed", size(before.saturating_sub(after)));
    match others.is_empty() {
        true => freed,
        false => format!("{freed}; {} still holds it", others.join(", ")),
    }
}

/// Who else holds the arrays of a variable.
fn other_holders(session: &Session, inner: &str, name: &str) -> Vec<String> {
    let Some(held) = session.interpreter.value(inner) else { return Vec::new() };
    let mut found = Vec::new();
    value::arrays(name, &held, &mut found);
    let mut others: Vec<String> = Vec::new();
    for (path, array) in found {
        let mut own_seen = false;
        for holder in array.holders() {
            // The variable's own claim is one of them, once.
            if !own_seen && holder == path {
                own_seen = true;
            } else if !others.contains(&holder) {
                others.push(holder);
            }
        }
    }
    others
}

fn reset(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if !matches!(arguments, "" | "-f") {
        nothing("reset", arguments)?;
    }
    let before = session.context.report().figures.requested_bytes;
    let names: Vec<String> =
        session.interpreter.variables().into_iter().map(|variable| variable.name).collect();
    for name in &names {
        drop(session.interpreter.remove(name));
    }
    session.last_output = None;
    let after = session.context.report().figures.requested_bytes;
    sink.say(format!(
        "{} names gone, {} freed; mode, caches and history stay",
        names.len(),
        size(before.saturating_sub(after))
    ));
    Ok(Effect::Told)
}

fn seed_of(text: &str) -> Result<u64, Refusal> {
    text.trim().parse().map_err(|_| {
        Refusal::new(format!("`{text}` is no seed: write a whole number, as in %seed 0"))
    })
}

fn seed(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let number = seed_of(arguments)?;
    session.run_rust(&format!("seed({number});"), 1, sink)?;
    sink.say(format!("seed {number}"));
    Ok(Effect::Told)
}
