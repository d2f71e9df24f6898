//! The one table of commands: help, completion, inspection and dispatch are derived from it.

mod allocation;
mod caching;
mod compare;
mod environment;
mod export;
mod files;
mod general;
mod memory;
mod names;
mod seeing;
mod sharing;
mod statistics;
mod timing;
mod tour;
mod whatif;
mod why;

use crate::config::unknown;
use crate::session::{Failed, Session};
use crate::sink::Sink;
use vramlab_memory::nearest;

/// One command.
pub struct Command {
    pub name: &'static str,
    /// Other spellings that are understood.
    pub aliases: &'static [&'static str],
    /// As help prints them: `[map | vars]`.
    pub arguments: &'static str,
    pub help: &'static str,
    /// A line that works.
    pub example: &'static str,
    pub complete: Completing,
    /// Arguments that can be judged before the cell runs.
    pub check: Option<Check>,
    /// It adds or removes variables, so the Rust behind it cannot be checked before it ran.
    pub changes_names: bool,
    pub action: Action,
}

/// Judges arguments without a session.
pub type Check = fn(&str) -> Result<(), Refusal>;

/// Does what a command is for.
pub type Action = fn(&mut Session, &str, &mut Sink) -> Result<Effect, Refusal>;

impl Command {
    /// What most commands have in common; every entry names the rest.
    pub(crate) const BASE: Command = Command {
        name: "",
        aliases: &[],
        arguments: "",
        help: "",
        example: "",
        complete: Completing::Nothing,
        check: None,
        changes_names: false,
        action: |_, _, _| Ok(Effect::Told),
    };
}

/// What Tab offers for a command's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completing {
    Nothing,
    Words(&'static [&'static str]),
    /// Modes and their options.
    Modes,
    Variables,
    /// Rust, as in a cell.
    Code,
    Commands,
    Files,
    /// A format, then a file.
    Exports,
    /// Environment names.
    Environment,
    /// What `%expect` measures.
    Figures,
    /// Entries of the compile cache, and the targets of `%clear`.
    Clearable,
}

/// What a command did, for the table after the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Answered, and said itself what it changed: no table.
    Told,
    /// Ran user code: a table.
    Ran,
}

/// Why a command did nothing. The state is as it was.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The word in `error[…]`.
    pub kind: &'static str,
    pub message: String,
    pub help: Option<String>,
    /// The failure of user code that the command ran; then it is the error.
    pub from_code: Option<Box<Failed>>,
}

impl Refusal {
    pub fn new(message: impl Into<String>) -> Refusal {
        Refusal { kind: "command", message: message.into(), help: None, from_code: None }
    }

    pub fn interrupted(message: impl Into<String>) -> Refusal {
        let kind = vramlab_array::ir::FaultKind::Interrupted.code();
        Refusal { kind, ..Refusal::new(message) }
    }

    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

impl From<Failed> for Refusal {
    fn from(failed: Failed) -> Refusal {
        let message = failed.error.message.clone();
        Refusal { from_code: Some(Box::new(failed)), ..Refusal::new(message) }
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal::new(message)
    }
}

pub(crate) use allocation::completions as mode_completions;
pub(crate) use general::describe;
pub(crate) use sharing::company_line;

/// What `%clear` and `%explain` may be told, with a word on each.
pub(crate) fn caching_names(session: &Session, command: &str) -> Vec<(String, String)> {
    let names = caching::function_names(session).into_iter();
    let mut all: Vec<(String, String)> =
        names.map(|name| (name, "compiled function".to_string())).collect();
    if command == "clear" {
        all.extend(["caches", "pool", "outputs", "all"].map(|name| (name.into(), String::new())));
    }
    all
}

/// Every command, as help lists them.
pub static COMMANDS: &[&[Command]] = &[
    allocation::COMMANDS,
    memory::COMMANDS,
    statistics::COMMANDS,
    seeing::COMMANDS,
    sharing::COMMANDS,
    why::COMMANDS,
    caching::COMMANDS,
    whatif::COMMANDS,
    timing::COMMANDS,
    compare::COMMANDS,
    names::COMMANDS,
    files::COMMANDS,
    export::COMMANDS,
    environment::COMMANDS,
    tour::COMMANDS,
    general::COMMANDS,
];

/// All commands in the order of the help.
pub fn all() -> impl Iterator<Item = &'static Command> + Clone {
    COMMANDS.iter().flat_map(|group| group.iter())
}

pub fn find(name: &str) -> Option<&'static Command> {
    all().find(|command| command.name == name || command.aliases.contains(&name))
}

/// # Errors
/// An unknown command is refused with the nearest name and the list.
pub fn lookup(name: &str) -> Result<&'static Command, Refusal> {
    if let Some(command) = find(name) {
        return Ok(command);
    }
    let names = || all().flat_map(|c| std::iter::once(c.name).chain(c.aliases.iter().copied()));
    let list: Vec<String> = all().map(|command| format!("%{}", command.name)).collect();
    let message = match nearest(name, names()) {
        Some(near) => format!("no command `%{name}`; did you mean `%{near}`?"),
        None => format!("no command `%{name}`"),
    };
    Err(Refusal::new(message).help(format!("the commands are {}", list.join(" "))))
}

/// A command that takes nothing was given something.
pub(crate) fn nothing(name: &str, arguments: &str) -> Result<(), Refusal> {
    match arguments {
        "" => Ok(()),
        text => Err(Refusal::new(format!("%{name} takes no arguments, so no `{text}`"))),
    }
}

/// One word of a closed list.
pub(crate) fn word_of(
    what: &str,
    given: &str,
    words: &'static [&'static str],
) -> Result<&'static str, Refusal> {
    let found = words.iter().find(|word| **word == given);
    found.copied().ok_or_else(|| Refusal::new(unknown(what, given, words.iter().copied())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let mut names = Vec::new();
        for command in all() {
            assert!(
                !command.help.is_empty() && command.help.ends_with(['.', '?']),
                "{}",
                command.name
            );
            assert!(
                command.example.trim_start_matches('%').starts_with(command.name),
                "{}",
                command.name
            );
            names.extend(std::iter::once(command.name).chain(command.aliases.iter().copied()));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name stands twice");
    }

    #[test]
    fn a_misspelt_command_finds_its_name() {
        let refusal = lookup("hlep").err().expect("no such command");
        assert!(refusal.message.contains("`%help`"), "{refusal:?}");
    }
}
