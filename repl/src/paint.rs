//! Colours, where the terminal takes them and the user wants them.

use std::borrow::Cow;
use std::io::IsTerminal;
use vramlab_session::scan::{Kind, Token, scan};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Keyword,
    Number,
    Text,
    Comment,
    Command,
    Error,
    Faint,
    Prompt,
}

#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Off for a pipe, for `NO_COLOR` (any value but an empty one) and for a dumb terminal.
    pub fn of_stdout() -> Paint {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Paint { on: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb }
    }

    pub fn is_on(self) -> bool {
        self.on
    }

    pub fn text(self, ink: Ink, text: &str) -> Cow<'_, str> {
        if !self.on || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match ink {
            Ink::Keyword => "35",
            Ink::Number => "36",
            Ink::Text => "32",
            Ink::Comment | Ink::Faint => "2",
            Ink::Command => "34",
            Ink::Error => "1;31",
            Ink::Prompt => "1;32",
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }

    /// A cell's text with its colours; the same characters otherwise.
    pub fn cell(self, source: &str) -> Cow<'_, str> {
        if !self.on || source.len() > LARGEST {
            return Cow::Borrowed(source);
        }
        let mut out = String::with_capacity(source.len() * 2);
        for (index, line) in source.split_inclusive('\n').enumerate() {
            let is_command = line.trim_start().starts_with(['%', '!', '?']);
            // The colours go line by line, unless a token spans lines.
            match is_command {
                true => out.push_str(&self.line(Ink::Command, line)),
                false if index == 0 && source.len() == line.len() => self.rust(line, &mut out),
                false => return Cow::Owned(self.mixed(source)),
            }
        }
        Cow::Owned(out)
    }

    /// Several lines: command lines in one colour, what is between them as Rust.
    fn mixed(self, source: &str) -> String {
        let mut out = String::with_capacity(source.len() * 2);
        let mut rust = String::new();
        for line in source.split_inclusive('\n') {
            let open = scan(&rust).last().is_some_and(|token| token.open);
            if !open && line.trim_start().starts_with(['%', '!', '?']) {
                self.rust(&std::mem::take(&mut rust), &mut out);
                out.push_str(&self.line(Ink::Command, line));
            } else {
                rust.push_str(line);
            }
        }
        self.rust(&rust, &mut out);
        out
    }

    fn line(self, ink: Ink, line: &str) -> String {
        let body = line.trim_end_matches('\n');
        format!("{}{}", self.text(ink, body), &line[body.len()..])
    }

    fn rust(self, source: &str, out: &mut String) {
        let mut at = 0;
        for token in scan(source) {
            out.push_str(&source[at..token.range.start]);
            let text = token.text(source);
            match ink_of(&token, text) {
                // A reset before each line end keeps a redrawn line whole.
                Some(ink) => {
                    let lines: Vec<_> = text.split('\n').map(|line| self.text(ink, line)).collect();
                    out.push_str(&lines.join("\n"));
                }
                None => out.push_str(text),
            }
            at = token.range.end;
        }
        out.push_str(&source[at..]);
    }
}

/// Colouring runs at every key.
const LARGEST: usize = 20_000;

fn ink_of(token: &Token, text: &str) -> Option<Ink> {
    match token.kind {
        Kind::Number => Some(Ink::Number),
        Kind::Text => Some(Ink::Text),
        Kind::Comment => Some(Ink::Comment),
        Kind::Word if KEYWORDS.contains(&text) => Some(Ink::Keyword),
        _ => None,
    }
}

const KEYWORDS: [&str; 34] = [
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
    "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub",
    "ref", "return", "self", "struct", "trait", "true", "type", "unsafe", "use", "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("\x1b[") {
            out.push_str(&rest[..start]);
            let end = rest[start..].find('m').expect("a colour ends");
            rest = &rest[start + end + 1..];
        }
        out + rest
    }

    #[test]
    fn colours_change_no_character() {
        let paint = Paint { on: true };
        for source in [
            "let x = 1.5; // why",
            "%mode ondemand",
            "let s = \"a\nb\";\n%mem\nfor i in 0..3 {\n}\n",
            "é = 'x' \"open",
            "",
        ] {
            let painted = paint.cell(source);
            assert_eq!(bare(&painted), source);
            assert!(source.is_empty() || painted.contains('\x1b'), "{source}");
        }
    }

    #[test]
    fn off_is_the_text_itself() {
        let paint = Paint { on: false };
        assert_eq!(paint.cell("let x = 1;"), "let x = 1;");
        assert_eq!(paint.text(Ink::Error, "error"), "error");
    }
}
