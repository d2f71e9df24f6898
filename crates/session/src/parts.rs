//! A cell's text as parts in order: Rust statements, `%` commands, `!` shell lines, questions.
//!
//! `%` and `!` begin a line of their own only where a statement may begin: between statements, with
//! no bracket, string or comment open. `a\n % b` stays one Rust expression.

use crate::scan::{Kind, Token, has_code, is_word, is_word_start, next_token, scan};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub kind: PartKind,
    /// Rust: the lines as written. Others: the text behind the sign.
    pub text: String,
    /// The first line of the part in the cell, from 1.
    pub line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Rust,
    /// `%name arguments`.
    Command,
    /// `!command line`.
    Shell,
    /// `?name` or `name?`.
    Question,
}

/// The magic on a cell's first line, and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Magic {
    pub name: String,
    pub arguments: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Parts {
    pub magics: Vec<Magic>,
    pub parts: Vec<Part>,
}

impl Parts {
    pub fn has_rust(&self) -> bool {
        self.parts.iter().any(|part| part.kind == PartKind::Rust)
    }

    /// Something beside `%expect` stands in the cell, so that there is something to judge in it.
    pub fn has_deeds(&self) -> bool {
        let judges =
            |part: &Part| part.kind == PartKind::Command && cut_word(&part.text).0 == "expect";
        !self.parts.iter().all(judges)
    }
}

/// `is_variable` decides `!name`: a negation when it is one.
pub fn split(source: &str, is_variable: &dyn Fn(&str) -> bool) -> Parts {
    let (magics, body) = magics(source);
    let mut parts = Vec::new();
    let mut at = body;
    for (start, part) in specials(source, body, is_variable) {
        push_rust(&mut parts, source, at, start);
        at = line_end_from(source, start);
        parts.push(part);
    }
    push_rust(&mut parts, source, at, source.len());
    Parts { magics, parts }
}

/// The `%%` lines at the beginning, and where the rest begins.
fn magics(source: &str) -> (Vec<Magic>, usize) {
    let mut magics = Vec::new();
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let body = line.trim();
        match body.strip_prefix("%%") {
            Some(rest) => {
                let (name, arguments) = cut_word(rest);
                magics.push(Magic { name: name.into(), arguments: arguments.into() });
            }
            None if body.is_empty() => {}
            None => break,
        }
        at += line.len();
    }
    (
        magics,
        if at == source.len() { at } else { source[..at].rfind('\n').map_or(0, |end| end + 1) },
    )
}

/// A word and what follows it, both trimmed.
pub fn cut_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.find(char::is_whitespace) {
        Some(end) => (&text[..end], text[end..].trim()),
        None => (text, ""),
    }
}

/// Rust text always begins a line, so that columns count from the line's own beginning.
fn push_rust(parts: &mut Vec<Part>, source: &str, from: usize, to: usize) {
    let text = &source[from..to];
    let text = text.strip_prefix('\n').unwrap_or(text);
    if has_code(text) {
        let line = line_of(source, to - text.len());
        parts.push(Part { kind: PartKind::Rust, text: text.into(), line });
    }
}

fn line_of(source: &str, at: usize) -> u32 {
    source[..at].bytes().filter(|byte| *byte == b'\n').count() as u32 + 1
}

fn special<'a>(body: &'a str, is_variable: &dyn Fn(&str) -> bool) -> Option<(PartKind, &'a str)> {
    if let Some(rest) = body.strip_prefix('%') {
        // `%mode?` asks about the command.
        return match rest.strip_suffix('?') {
            Some(name) if !name.contains(char::is_whitespace) => {
                Some((PartKind::Question, body.trim_end_matches('?')))
            }
            _ => Some((PartKind::Command, rest.trim())),
        };
    }
    if let Some(rest) = body.strip_prefix('!') {
        let word: String = rest.chars().take_while(|c| is_word(*c)).collect();
        let is_rust = rest.starts_with(|c: char| matches!(c, '(' | '!' | '*' | '0'..='9'))
            || word == "true"
            || word == "false"
            || is_variable(&word);
        return (!is_rust && !rest.trim().is_empty()).then_some((PartKind::Shell, rest.trim()));
    }
    let asked = body.trim_start_matches('?').trim_end_matches('?').trim();
    (asked.len() < body.len() && is_name(asked)).then_some((PartKind::Question, asked))
}

/// `tanh`, `x.tanh`, `%mode`, `Array::tanh`, `println!`.
fn is_name(text: &str) -> bool {
    let text = text.trim_end_matches('!');
    let text = text.strip_prefix('%').unwrap_or(text);
    text.starts_with(is_word_start) && text.chars().all(|c| is_word(c) || c == '.' || c == ':')
}

/// Everything that is not Rust, with the byte where it begins. `%` begins a command wherever a
/// statement may begin, the other signs only at the beginning of a line. The text of a command is no
/// Rust: the scan goes on behind its line.
fn specials(source: &str, body: usize, is_variable: &dyn Fn(&str) -> bool) -> Vec<(usize, Part)> {
    let mut found = Vec::new();
    let mut walker = Walker::default();
    let mut at = body;
    // Whether the line at hand has had a token. Looking back for its beginning at every token would
    // take quadratic time on one long line.
    let mut is_first = true;
    while let Some(token) = next_token(source, at) {
        let start = token.range.start;
        is_first |= source[at..start].contains('\n');
        at = token.range.end;
        if walker.between() && (is_first || token.is_mark(source, '%')) {
            let line = source[start..line_end_from(source, start)].trim();
            if let Some((kind, text)) = special(line, is_variable) {
                let part = Part { kind, text: text.into(), line: line_of(source, start) };
                found.push((start, part));
                at = line_end_from(source, start);
                is_first = true;
                continue;
            }
        }
        is_first = false;
        walker.step(source, &token);
    }
    found
}

fn line_end_from(source: &str, at: usize) -> usize {
    source[at..].find('\n').map_or(source.len(), |length| at + length)
}

/// Whether a text only defines: nothing of it runs.
pub fn only_items(source: &str) -> bool {
    let mut walker = Walker::default();
    let mut any = false;
    let tokens = scan(source);
    for (at, token) in tokens.iter().enumerate() {
        let text = token.text(source);
        if token.kind != Kind::Comment && walker.between() && text != ";" {
            let is_tree =
                text == "tree" && tokens.get(at + 1).is_some_and(|next| next.is_mark(source, '!'));
            if !ITEMS.contains(&text) && !is_tree {
                return false;
            }
            any = true;
        }
        walker.step(source, token);
    }
    any
}

const ITEMS: [&str; 12] =
    ["fn", "struct", "enum", "impl", "trait", "mod", "pub", "const", "static", "type", "use", "#"];

/// Follows statements: what is open, and whether the last one has ended.
#[derive(Default)]
struct Walker {
    depth: usize,
    in_statement: bool,
    /// A statement that ends with its block, without a semicolon.
    block_like: bool,
}

/// An attribute stands before an item, and `tree!` around some.
const BLOCK_LIKE: [&str; 16] = [
    "if", "for", "while", "loop", "match", "fn", "unsafe", "struct", "enum", "impl", "trait",
    "mod", "pub", "const", "#", "tree",
];

impl Walker {
    fn between(&self) -> bool {
        self.depth == 0 && !self.in_statement
    }

    fn step(&mut self, source: &str, token: &Token) {
        if token.kind == Kind::Comment {
            // An open comment swallows the rest, so nothing can begin behind it anyway.
            return;
        }
        let text = token.text(source);
        if self.between() {
            self.in_statement = text != ";";
            self.block_like = BLOCK_LIKE.contains(&text) || text == "{";
        }
        if token.kind != Kind::Mark {
            return;
        }
        match text {
            "(" | "[" | "{" => self.depth += 1,
            ")" | "]" => self.depth = self.depth.saturating_sub(1),
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 && self.block_like {
                    self.in_statement = false;
                }
            }
            ";" if self.depth == 0 => self.in_statement = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(PartKind, String, u32)> {
        let parts = split(source, &|name| name == "x");
        parts.parts.into_iter().map(|part| (part.kind, part.text, part.line)).collect()
    }

    #[test]
    fn commands_stand_between_statements() {
        let found = kinds("let a = 1;\n%mem\nlet b = a\n  % 2;\n%mode ondemand gc=on\nb");
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(found[1], (PartKind::Command, "mem".into(), 2));
        assert_eq!(found[2], (PartKind::Rust, "let b = a\n  % 2;\n".into(), 3));
        assert_eq!(found[3], (PartKind::Command, "mode ondemand gc=on".into(), 5));
    }

    #[test]
    fn a_percent_inside_is_rust() {
        for rust in [
            "let s = \"\n%mem\n\";",
            "/*\n%mem\n*/ 1",
            "f(\n%mem\n)",
            "7\n% 2",
            "let y = { 3 }\n% 2;",
        ] {
            let found = kinds(rust);
            assert_eq!(found.len(), 1, "{rust:?} {found:?}");
            assert_eq!(found[0].0, PartKind::Rust);
        }
    }

    #[test]
    fn a_block_ends_its_statement() {
        let found = kinds("for i in 0..3 {\n  i;\n}\n%mem");
        assert_eq!(found[1], (PartKind::Command, "mem".into(), 4));
    }

    #[test]
    fn shell_and_questions() {
        assert_eq!(kinds("!ls -l")[0], (PartKind::Shell, "ls -l".into(), 1));
        assert_eq!(kinds("!x")[0].0, PartKind::Rust);
        assert_eq!(kinds("?tanh")[0], (PartKind::Question, "tanh".into(), 1));
        assert_eq!(kinds("x.tanh?")[0], (PartKind::Question, "x.tanh".into(), 1));
        assert_eq!(kinds("%mode?")[0], (PartKind::Question, "%mode".into(), 1));
        assert_eq!(kinds("f(x)?")[0].0, PartKind::Rust);
    }

    #[test]
    fn text_of_a_command_does_not_disturb_what_follows() {
        let found = kinds("%env A=\"(\n%mem\nlet a = 1;");
        assert_eq!(found.len(), 3, "{found:?}");
        let found = kinds("!echo it's (\n1");
        assert_eq!(found[0].0, PartKind::Shell);
    }

    #[test]
    fn a_command_may_follow_a_statement_on_its_line() {
        let found = kinds("drop(a); %mode ondemand\nlet b = 7 % 2;\nb");
        assert_eq!(found[0], (PartKind::Rust, "drop(a); ".into(), 1));
        assert_eq!(found[1], (PartKind::Command, "mode ondemand".into(), 1));
        assert_eq!(found[2], (PartKind::Rust, "let b = 7 % 2;\nb".into(), 2));
        assert_eq!(kinds("x; !x")[0].1, "x; !x");
    }

    #[test]
    fn definitions_do_not_run() {
        assert!(only_items("fn f(x: i32) -> i32 { x }\n// words\nconst N: i32 = 3;"));
        assert!(only_items("#[derive(Clone)]\nstruct P { x: i32 }\nstruct Q(P);\nimpl P {}"));
        assert!(only_items("tree! { struct P { w: Array } }\nfn f() {}"));
        for runs in ["fn f() {} f()", "let a = 1;", "", "1", "tree", "struct P; P", "tree! {} 1"] {
            assert!(!only_items(runs), "{runs}");
        }
    }

    #[test]
    fn magics_come_first() {
        let parts = split("%%time\n%%capture out\n1 + 1", &|_| false);
        assert_eq!(parts.magics.len(), 2);
        assert_eq!(parts.magics[1].arguments, "out");
        assert_eq!(parts.parts[0].line, 3);
    }
}
