//! Cells from and to files: `%run`, `%save`, `%load`.

use super::{Command, Completing, Effect, Refusal};
use crate::percent;
use crate::session::Session;
use crate::sink::Sink;
use std::path::{Path, PathBuf};

pub static COMMANDS: &[Command] = &[
    Command {
        name: "run",
        arguments: "FILE",
        help: "Runs the cells of a .rs file (// %% between cells) in this session.",
        example: "%run lesson.rs",
        complete: Completing::Files,
        changes_names: true,
        action: run,
        ..Command::BASE
    },
    Command {
        name: "save",
        arguments: "FILE",
        help: "Writes the cells of this session that worked to a .rs file in percent format.",
        example: "%save lesson.rs",
        complete: Completing::Files,
        action: save,
        ..Command::BASE
    },
    Command {
        name: "load",
        arguments: "FILE",
        help: "Puts the text of a file into the next cell, to be read and changed before it runs.",
        example: "%load lesson.rs",
        complete: Completing::Files,
        action: load,
        ..Command::BASE
    },
];

fn read(path: &str) -> Result<String, Refusal> {
    if path.is_empty() {
        return Err(Refusal::new("which file?"));
    }
    let bytes =
        crate::why::read_file(path).map_err(|why| Refusal::new(format!("{path}: {why}")))?;
    String::from_utf8(bytes).map_err(|_| Refusal::new(format!("{path}: not a text file (UTF-8)")))
}

fn run(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let text = read(arguments)?;
    let file = Path::new(arguments).canonicalize().unwrap_or_else(|_| PathBuf::from(arguments));
    if session.running.files.contains(&file) {
        return Err(Refusal::new(format!("{arguments} runs itself")));
    }
    session.running.files.push(file);
    let ran = percent::cells(&text).iter().try_fold(Effect::Told, |effect, cell| {
        let one = session.run_nested(cell, sink)?;
        Ok::<Effect, Refusal>(if one == Effect::Ran { one } else { effect })
    });
    session.running.files.pop();
    ran
}

fn save(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if arguments.is_empty() {
        return Err(Refusal::new("which file? write %save lesson.rs"));
    }
    let worked = session.past.iter().filter(|past| past.status == crate::Status::Ok);
    let cells: Vec<&str> = worked.map(|past| past.source.as_str()).collect();
    let text: String = cells.iter().map(|cell| format!("// %%\n{}\n\n", cell.trim_end())).collect();
    std::fs::write(arguments, text)
        .map_err(|error| Refusal::new(format!("{arguments}: {error}")))?;
    sink.say(format!("{} cells written to {arguments}", cells.len()));
    Ok(Effect::Told)
}

fn load(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let text = read(arguments)?;
    sink.say(format!("{} lines of {arguments} stand in the next cell", text.lines().count()));
    session.next_input = Some(text);
    Ok(Effect::Told)
}
