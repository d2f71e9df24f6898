//! What Tab offers: commands and their arguments, variables, the prelude, methods by the receiver's
//! type.

use crate::commands::{self, Completing, caching_names, mode_completions};
use crate::event::{Completion, Completions};
use crate::expect;
use crate::rewrite::{out_number, rewrite};
use crate::scan::{Token, is_word, scan};
use crate::session::Session;
use vramlab_array::surface::{self, Place};
use vramlab_memory::modes::JAX_VARIABLES;

/// What may stand at `position`, which need not lie between characters.
pub fn at(session: &Session, code: &str, position: usize) -> Completions {
    let mut end = position.min(code.len());
    while !code.is_char_boundary(end) {
        end -= 1;
    }
    let line_start = code[..end].rfind('\n').map_or(0, |at| at + 1);
    let line = &code[line_start..end];
    let indent = line.len() - line.trim_start().len();
    let from = line_start + indent;
    match line.trim_start().chars().next() {
        Some('%') => command(session, code, from, end),
        Some('?') => found(word_start(code, end), end, names(session, ""), word(code, end)),
        _ => code_at(session, code, end),
    }
}

fn word_start(code: &str, end: usize) -> usize {
    code[..end]
        .char_indices()
        .rev()
        .find(|(_, c)| !is_word(*c))
        .map_or(0, |(at, c)| at + c.len_utf8())
}

fn word(code: &str, end: usize) -> &str {
    &code[word_start(code, end)..end]
}

/// Keeps what begins with `prefix`, each once, sorted.
fn found(
    start: usize,
    end: usize,
    all: impl IntoIterator<Item = (String, String)>,
    prefix: &str,
) -> Completions {
    let mut items: Vec<Completion> = all
        .into_iter()
        .filter(|(text, _)| text.starts_with(prefix))
        .map(|(text, detail)| Completion { text, detail })
        .collect();
    items.sort_by(|a, b| a.text.cmp(&b.text));
    items.dedup_by(|a, b| a.text == b.text);
    Completions { start, end, items }
}

/// A line that begins with `%`.
fn command(session: &Session, code: &str, from: usize, end: usize) -> Completions {
    let text = &code[from..end];
    let signs = text.len() - text.trim_start_matches('%').len();
    let body = &text[signs..];
    let Some(space) = body.find(char::is_whitespace) else {
        let magics = [("time", "how long the cell takes"), ("capture", "keeps the cell's output")];
        return match signs {
            1 => found(from + 1, end, command_names(), body),
            _ => found(from + signs, end, magics.map(|(n, d)| (n.into(), d.into())), body),
        };
    };
    let Some(command) = commands::find(&body[..space]) else {
        return found(end, end, [], "");
    };
    let arguments = &body[space..];
    let start = end - arguments.len() + arguments.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let typed = &code[start..end];
    let words: Vec<&str> = arguments.split_whitespace().collect();
    match command.complete {
        Completing::Nothing => found(end, end, [], ""),
        Completing::Words(words) => {
            found(start, end, words.iter().map(|word| (word.to_string(), String::new())), typed)
        }
        Completing::Modes => found(start, end, mode_completions(&words), typed),
        Completing::Commands => found(start, end, command_names(), typed),
        Completing::Variables => found(start, end, variables(session), typed),
        Completing::Code => code_at(session, code, end),
        Completing::Files => found(start, end, files(typed), typed),
        Completing::Exports => match words.len() {
            0 => found(start, end, export_formats(), typed),
            1 if !typed.is_empty() => found(start, end, export_formats(), typed),
            _ => found(start, end, files(typed), typed),
        },
        Completing::Environment => {
            let jax = JAX_VARIABLES.map(|name| (format!("{name}="), "acts at once".to_string()));
            let set = session.env.iter().map(|(name, value)| (name.clone(), value.clone()));
            found(start, end, jax.into_iter().chain(set), typed)
        }
        Completing::Figures => found(
            start,
            end,
            expect::figure_names().map(|name| (name.into(), String::new())),
            typed,
        ),
        Completing::Clearable => found(start, end, caching_names(session, command.name), typed),
    }
}

fn command_names() -> impl Iterator<Item = (String, String)> {
    commands::all().map(|command| (command.name.to_string(), command.help.to_string()))
}

fn export_formats() -> impl Iterator<Item = (String, String)> {
    vramlab_export::FORMATS.iter().map(|format| (format.name.to_string(), format.help.to_string()))
}

/// Entries of a folder that begin with what was typed; folders end in a slash.
fn files(typed: &str) -> Vec<(String, String)> {
    let (folder, prefix) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed),
    };
    let Ok(entries) = std::fs::read_dir(if folder.is_empty() { "." } else { folder }) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let hidden = name.starts_with('.') && !prefix.starts_with('.');
        if name.starts_with(prefix) && !hidden {
            let slash = if entry.path().is_dir() { "/" } else { "" };
            names.push((format!("{folder}{name}{slash}"), String::new()));
        }
    }
    names
}

fn variables(session: &Session) -> impl Iterator<Item = (String, String)> {
    let live = session.variables().into_iter().filter(|variable| variable.moved.is_none());
    live.map(|variable| (variable.name, variable.ty))
}

/// Everything that may begin an expression behind `code`.
fn names(session: &Session, code: &str) -> Vec<(String, String)> {
    let known = session.interpreter.names_at(code).into_iter();
    let mut all: Vec<(String, String)> = known
        .filter(|member| out_number(&member.name).is_none())
        .map(|member| (member.name, member.detail))
        .collect();
    all.extend(session.outputs().into_iter().map(|(n, v)| (format!("Out[{n}]"), v.ty)));
    all.extend(KEYWORDS.map(|word| (word.to_string(), String::new())));
    all.extend(MACROS.map(|word| (word.to_string(), "macro".to_string())));
    all
}

const KEYWORDS: [&str; 15] = [
    "as", "break", "continue", "else", "false", "fn", "for", "if", "in", "let", "loop", "match",
    "mut", "true", "while",
];
const MACROS: [&str; 7] =
    ["assert!", "assert_eq!", "eprintln!", "format!", "print!", "println!", "vec!"];

/// Rust at the end of `code[..end]`.
fn code_at(session: &Session, code: &str, end: usize) -> Completions {
    let start = word_start(code, end);
    let typed = &code[start..end];
    let before = &code[..start];
    let tokens = scan(before);
    let inside = tokens.last().is_some_and(|token| token.open);
    if inside || typed.starts_with(|c: char| c.is_ascii_digit()) {
        return found(end, end, [], "");
    }
    let statement = &before[rust_start(before)..];
    match tokens.last() {
        Some(dot) if dot.is_mark(before, '.') && !is_range(&tokens, before) => {
            found(start, end, methods(session, statement), typed)
        }
        _ => found(start, end, names(session, statement), typed),
    }
}

/// Behind the last line of commands, or behind `%time`.
fn rust_start(before: &str) -> usize {
    let mut start = 0;
    let mut at = 0;
    for line in before.split_inclusive('\n') {
        let body = line.trim_start();
        if body.starts_with(['%', '!', '?']) {
            let word = body.find(char::is_whitespace).unwrap_or(body.len());
            let is_last = at + line.len() == before.len() && !line.ends_with('\n');
            start = at + if is_last { line.len() - body.len() + word } else { line.len() };
        }
        at += line.len();
    }
    start
}

fn is_range(tokens: &[Token], source: &str) -> bool {
    let [.., first, second] = tokens else { return false };
    first.is_mark(source, '.') && first.range.end == second.range.start
}

/// Methods and fields of the receiver; of every type when it is not known.
fn methods(session: &Session, before: &str) -> Vec<(String, String)> {
    let rewritten = rewrite(before, session.last_output).text;
    if let Some(members) = session.interpreter.members(&rewritten) {
        return members.into_iter().map(|member| (member.name, member.detail)).collect();
    }
    let methods = surface::items().filter(|item| matches!(item.place, Place::Method(_)));
    methods.map(|item| (item.name.to_string(), item.signature.to_string())).collect()
}
