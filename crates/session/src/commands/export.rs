//! `%export`: this session's memory for other tools.

use super::{Command, Completing, Effect, Refusal};
use crate::parts::cut_word;
use crate::session::Session;
use crate::sink::Sink;
use vramlab_export::{FORMATS, find};

pub static COMMANDS: &[Command] = &[Command {
    name: "export",
    arguments: "FORMAT FILE",
    help: "Writes the memory and its events for another tool: pprof, viz (PyTorch), perfetto, csv, trace.",
    example: "%export perfetto session.json",
    complete: Completing::Exports,
    check: Some(|arguments| parse(arguments).map(|_| ())),
    action: export,
    ..Command::BASE
}];

/// Format and file.
fn parse(arguments: &str) -> Result<(&str, &str), Refusal> {
    let (format, file) = cut_word(arguments.trim());
    if format.is_empty() {
        let lines = FORMATS.iter().map(|format| format!("{}: {}", format.name, format.help));
        let list = lines.collect::<Vec<_>>().join("\n          ");
        return Err(Refusal::new("export what? write %export FORMAT FILE").help(list));
    }
    let format = find(format)?;
    match file.trim() {
        "" => {
            let example = format!("%export {} session{}", format.name, format.ending);
            Err(Refusal::new(format!("into which file? write {example}")))
        }
        file => Ok((format.name, file)),
    }
}

fn export(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let (format, file) = parse(arguments)?;
    let written =
        session.export(format, file).map_err(|why| match session.interrupt.is_raised() {
            true => Refusal::interrupted(why),
            false => Refusal::new(why),
        })?;
    sink.say(written);
    Ok(Effect::Told)
}
