//! `tanh?`, Shift-Tab: what is known of a name.

use crate::commands;
use crate::event::Content;
use crate::report::size;
use crate::rewrite::out_name;
use crate::scan::is_word;
use crate::session::Session;
use crate::table::escape;
use crate::value;
use vramlab_array::surface::{self, Item, Place};
use vramlab_cells::{Member, Variable};
use vramlab_memory::nearest;

/// The name at a place of a cell.
pub fn at(session: &Session, code: &str, position: usize) -> Option<Content> {
    let mut here = position.min(code.len());
    while !code.is_char_boundary(here) {
        here -= 1;
    }
    let back = |at: usize| code[..at].char_indices().rev().take_while(|(_, c)| is_word(*c)).last();
    let mut start = back(here).map_or(here, |(at, _)| at);
    let mut end = here
        + code[here..]
            .char_indices()
            .find(|(_, c)| !is_word(*c))
            .map_or(code.len() - here, |(at, _)| at);
    if start == end {
        // Behind `tanh(`: the function that is being called.
        let open = code[..here].trim_end().strip_suffix('(')?;
        end = open.len();
        start = back(end)?.0;
    }
    let word = &code[start..end];
    let before = &code[..start];
    if before.ends_with('%') {
        return name(session, &format!("%{word}"));
    }
    if before.ends_with('.') {
        let of_receiver = session.interpreter.members(before).into_iter().flatten();
        let mut own = of_receiver.filter(|member| member.name == word);
        return match own.next() {
            Some(member) => of_signature(&member.detail).or_else(|| Some(of_member(&member))),
            None => method(word),
        };
    }
    name(session, word)
}

/// `tanh`, `x`, `x.tanh`, `Array::tanh`, `%mode`, `Out[3]`.
pub fn name(session: &Session, asked: &str) -> Option<Content> {
    if let Some(command) = asked.strip_prefix('%') {
        let command = commands::find(command.trim_start_matches('%'))?;
        return Some(Content::of_text(commands::describe(command)));
    }
    let asked = asked.trim_end_matches('!');
    if let Some((_, method_name)) = asked.rsplit_once("::").or_else(|| asked.rsplit_once('.')) {
        return method(method_name);
    }
    let variables = session.interpreter.variables();
    let inner = match asked.strip_prefix("Out[").and_then(|rest| rest.strip_suffix(']')) {
        Some(number) => out_name(number.parse().ok()?),
        None => asked.to_string(),
    };
    if let Some(variable) = variables.iter().find(|variable| variable.name == inner) {
        return Some(of_variable(session, asked, variable));
    }
    let functions = session.interpreter.functions();
    if let Some((_, signature, source)) = functions.iter().find(|(name, _, _)| name == asked) {
        return Some(Content::of_text(format!("{signature}\n{source}")));
    }
    let structs = session.interpreter.structs();
    if let Some((_, source, given)) = structs.iter().find(|(name, ..)| name == asked) {
        let lines = std::iter::once(source).chain(given);
        return Some(Content::of_text(lines.cloned().collect::<Vec<_>>().join("\n")));
    }
    let known = || session.interpreter.names_at("").into_iter().find(|own| own.name == asked);
    of_items(surface::items().filter(|item| item.name == asked))
        .or_else(|| known().map(|member| of_member(&member)))
}

fn method(name: &str) -> Option<Content> {
    let is_method = |item: &&Item| item.name == name && matches!(item.place, Place::Method(_));
    of_items(surface::items().filter(is_method))
}

/// The item of the surface with that signature: it has an example too.
fn of_signature(signature: &str) -> Option<Content> {
    of_items(surface::items().filter(|item| item.signature == signature))
}

fn of_member(member: &Member) -> Content {
    Content::of_text(format!("{}\n{}", member.detail, member.doc).trim_end())
}

/// Signature, words and example of each.
fn of_items<'a>(items: impl Iterator<Item = &'a Item>) -> Option<Content> {
    let (mut text, mut html) = (Vec::new(), String::new());
    for item in items {
        let place = match item.place {
            Place::Method(ty) => format!("{ty}: "),
            Place::Function | Place::Constant => String::new(),
        };
        text.push(format!("{place}{}\n{}\nexample: {}", item.signature, item.doc, item.example));
        html.push_str(&format!(
            "<div><code>{}{}</code><p>{}</p><pre>{}</pre></div>",
            escape(&place),
            escape(item.signature),
            escape(item.doc),
            escape(item.example)
        ));
    }
    (!text.is_empty()).then(|| Content {
        text: text.join("\n\n"),
        html: Some(html),
        ..Content::default()
    })
}

/// Type, shape, bytes, holders and cell.
fn of_variable(session: &Session, shown: &str, variable: &Variable) -> Content {
    let mutable = if variable.mutable { "mut " } else { "" };
    let mut text = format!("{mutable}{shown}: {}", variable.ty);
    if let Some(cell) = variable.moved {
        text.push_str(&format!("\nmoved in cell {cell}: it holds nothing"));
        return Content::of_text(text);
    }
    if let Some(held) = session.interpreter.value(&variable.name) {
        let mut arrays = Vec::new();
        value::arrays(shown, &held, &mut arrays);
        for (path, array) in arrays.iter().take(MOST_ARRAYS) {
            let holders = array.holders().join(", ");
            text.push_str(&format!(
                "\n{path}: {}, {} ({} bytes), held by {holders}",
                array.ty(),
                size(array.ty().bytes()),
                array.ty().bytes()
            ));
        }
        if arrays.len() > MOST_ARRAYS {
            text.push_str(&format!("\n… {} more arrays", arrays.len() - MOST_ARRAYS));
        }
    }
    text.push_str(&format!("\nbound in cell {}", variable.cell));
    Content::of_text(text)
}

const MOST_ARRAYS: usize = 20;

/// Why nothing is known, with the nearest name.
pub fn unknown_name(session: &Session, asked: &str) -> String {
    let variables = session.variables();
    let names = variables.iter().map(|variable| variable.name.as_str());
    let items = surface::items().map(|item| item.name);
    let commands = commands::all().map(|command| command.name);
    let word = asked.trim_start_matches('%');
    let near = match asked.starts_with('%') {
        true => nearest(word, commands).map(|name| format!("%{name}")),
        false => nearest(word, names.chain(items)).map(str::to_string),
    };
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("nothing is known of `{asked}`{near}")
}
