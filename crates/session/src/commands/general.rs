//! Help, history, settings of the session, and the way out.

use super::{Command, Completing, Effect, Refusal, all, lookup, nothing, word_of};
use crate::config::{WATCH_WORDS, parse_watch};
use crate::event::{Event, MEMORY_DISPLAY, MemoryReport, Table, Watch};
use crate::session::Session;
use crate::sink::Sink;
use crate::{measure, report};
use vramlab_runtime::CellFigures;

pub static COMMANDS: &[Command] = &[
    Command {
        name: "help",
        arguments: "[COMMAND]",
        help: "Lists the commands, or explains one.",
        example: "%help mode",
        complete: Completing::Commands,
        action: help,
        ..Command::BASE
    },
    Command {
        name: "watch",
        arguments: "[off | brief | full | live]",
        help: "How much of the memory table follows each cell; live pins one display with the map.",
        example: "%watch full",
        complete: Completing::Words(&["off", "brief", "full", "live"]),
        action: watch,
        ..Command::BASE
    },
    Command {
        name: "outputs",
        arguments: "[on | off]",
        help: "Whether the value of a cell is kept as Out[n].",
        example: "%outputs off",
        complete: Completing::Words(&["on", "off"]),
        action: outputs,
        ..Command::BASE
    },
    Command {
        name: "history",
        aliases: &["hist"],
        arguments: "[COUNT]",
        help: "The cells of this session.",
        example: "%history 5",
        action: history,
        ..Command::BASE
    },
    Command {
        name: "exit",
        aliases: &["quit"],
        arguments: "",
        help: "Ends the session.",
        example: "%exit",
        action: exit,
        ..Command::BASE
    },
];

fn help(_: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let name = arguments.trim_start_matches('%');
    if !name.is_empty() {
        sink.say(describe(lookup(name)?));
        return Ok(Effect::Told);
    }
    let mut table = Table::new(&["command", "what it does"]);
    for command in all() {
        table.row([format!("%{}", command.name), command.help.to_string()]);
    }
    for line in [
        "%%time and %%capture [NAME] stand on a cell's first line. !LINE runs a shell command.",
        "?NAME or NAME? explains a function, a method, a command or a variable.",
        "Out[n] is the value of cell n, _ the last one. Everything else is Rust.",
    ] {
        table.note(line);
    }
    sink.table(table);
    Ok(Effect::Told)
}

/// `%name arguments`.
pub(crate) fn usage(command: &Command) -> String {
    format!("%{} {}", command.name, command.arguments).trim_end().to_string()
}

/// What help and inspection say of a command.
pub(crate) fn describe(command: &Command) -> String {
    let mut text = format!("{}\n{}\nexample: {}", usage(command), command.help, command.example);
    if !command.aliases.is_empty() {
        text.push_str(&format!("\nalso %{}", command.aliases.join(", %")));
    }
    text
}

fn watch(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if !arguments.is_empty() {
        session.watch = parse_watch(arguments)?;
        if session.watch == Watch::Live {
            pin(session, sink);
            return Ok(Effect::Told);
        }
    }
    let word = WATCH_WORDS.iter().find(|(_, watch)| *watch == session.watch);
    let (word, _) = word.expect("every setting has a word");
    let words: Vec<&str> = WATCH_WORDS.iter().map(|(name, _)| *name).collect();
    sink.say(format!("watch {word}   ({})", words.join(" | ")));
    Ok(Effect::Told)
}

/// The display stands below the cell that asked for it, and below this one again when it is run again.
fn pin(session: &mut Session, sink: &mut Sink) {
    let report = MemoryReport {
        watch: Watch::Live,
        ..measure::memory(&session.context, &CellFigures::default(), &session.around())
    };
    let content = report::content(&report);
    sink.send(Event::Display { content, id: Some(MEMORY_DISPLAY.into()), update: false });
}

fn outputs(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if !arguments.is_empty() {
        session.keep_outputs = word_of("setting", arguments, &["on", "off"])? == "on";
    }
    sink.say(match session.keep_outputs {
        true => "outputs on: the value of a cell is kept as Out[n]",
        false => "outputs off: values are shown and not kept",
    });
    Ok(Effect::Told)
}

fn history(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let count = match arguments {
        "" => usize::MAX,
        text => text.parse().map_err(|_| Refusal::new(format!("`{text}` is not a number")))?,
    };
    let past = session.history();
    for entry in &past[past.len().saturating_sub(count)..] {
        let label = format!("[{}] ", entry.cell);
        let indent = format!("\n{}", " ".repeat(label.len()));
        sink.line(format!("{label}{}", entry.source.trim_end().replace('\n', &indent)));
    }
    Ok(Effect::Told)
}

fn exit(session: &mut Session, arguments: &str, _: &mut Sink) -> Result<Effect, Refusal> {
    nothing("exit", arguments)?;
    session.exit = true;
    Ok(Effect::Told)
}
