//! `drop(x)` that frees nothing, because somebody else still holds the bytes: said, with the holder.

use crate::report::size;
use crate::scan::{Kind, scan};
use vramlab_runtime::{BufferReport, Context};

/// The allocations behind the variables that a text is about to drop.
pub struct Watched(Vec<(String, Vec<u64>)>);

/// Names in `drop(x)` and `drop((x, y))`.
fn dropped_names(text: &str) -> Vec<String> {
    let tokens = scan(text);
    let mut names = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let opens = tokens.get(index + 1).is_some_and(|next| next.is_mark(text, '('));
        if token.kind != Kind::Word || token.text(text) != "drop" || !opens {
            continue;
        }
        let inside = tokens[index + 2..].iter();
        let plain = inside
            .take_while(|token| !token.is_mark(text, ')') && !token.is_mark(text, ';'))
            .filter(|token| token.kind == Kind::Word);
        names.extend(plain.map(|token| token.text(text).to_string()));
    }
    names
}

/// Call before the text runs.
pub fn watch(context: &Context, text: &str) -> Watched {
    let names = if text.contains("drop") { dropped_names(text) } else { Vec::new() };
    if names.is_empty() {
        return Watched(Vec::new());
    }
    let buffers = context.buffers();
    let of = |name: String| {
        let held = buffers.iter().filter(|buffer| holds(buffer, &name) && buffer.granted > 0);
        let allocations = held.map(|buffer| buffer.allocation).collect();
        (name, allocations)
    };
    Watched(names.into_iter().map(of).collect())
}

fn holds(buffer: &BufferReport, name: &str) -> bool {
    buffer.holders.iter().any(|holder| holder == name)
}

/// Call when it has run.
pub fn notes(context: &Context, watched: Watched) -> Vec<String> {
    if watched.0.is_empty() {
        return Vec::new();
    }
    let buffers = context.buffers();
    let mut notes = Vec::new();
    for (name, allocations) in watched.0 {
        for allocation in allocations {
            let left = buffers.iter().find(|buffer| buffer.allocation == allocation);
            let Some(buffer) = left.filter(|buffer| !holds(buffer, &name)) else { continue };
            notes.push(format!(
                "drop({name}) freed nothing: {} still holds its {}",
                buffer.holders.join(", "),
                size(buffer.requested)
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        assert_eq!(dropped_names("drop(a); drop((b, c)); x.drop; // drop(d)"), ["a", "b", "c"]);
        assert!(dropped_names("let dropped = 1;").is_empty());
    }
}
