//! A tolerant scanner of Rust text: never fails, keeps every byte. For what must work on unfinished
//! text (where a command may begin, completion, colours); `cells` does the real parsing.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    Number,
    /// String, byte string, raw string or character.
    Text,
    Lifetime,
    Comment,
    /// One character of punctuation.
    Mark,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub range: Range<usize>,
    /// The text ended inside this token.
    pub open: bool,
}

impl Token {
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.range.clone()]
    }

    pub fn is_mark(&self, source: &str, mark: char) -> bool {
        self.kind == Kind::Mark && self.text(source).starts_with(mark)
    }
}

/// Whether there is anything to run: a comment that never ends is an error, and no blank.
pub fn has_code(source: &str) -> bool {
    scan(source).iter().any(|token| token.kind != Kind::Comment || token.open)
}

/// All tokens, comments included, white space left out.
pub fn scan(source: &str) -> Vec<Token> {
    let first = next_token(source, 0);
    std::iter::successors(first, |token| next_token(source, token.range.end)).collect()
}

/// The words that can name a variable: no field or method, nor a name before a colon.
pub fn names_in(source: &str) -> Vec<&str> {
    let tokens: Vec<Token> =
        scan(source).into_iter().filter(|token| token.kind != Kind::Comment).collect();
    let is = |at: Option<usize>, mark: char| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| token.is_mark(source, mark))
    };
    let stands = |at: usize| {
        // A range has two dots.
        let of_value = is(at.checked_sub(1), '.') && !is(at.checked_sub(2), '.');
        tokens[at].kind == Kind::Word && !of_value && !is(Some(at + 1), ':')
    };
    (0..tokens.len()).filter(|&at| stands(at)).map(|at| tokens[at].text(source)).collect()
}

/// The first token at or behind byte `from`, which lies between tokens.
pub fn next_token(source: &str, from: usize) -> Option<Token> {
    let rest = source[from..].trim_start();
    let start = source.len() - rest.len();
    let (kind, length, open) = token_at(rest, rest.chars().next()?);
    Some(Token { kind, range: start..start + length, open })
}

fn token_at(rest: &str, first: char) -> (Kind, usize, bool) {
    if rest.starts_with("//") {
        let length = rest.find('\n').unwrap_or(rest.len());
        return (Kind::Comment, length, false);
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if let Some(found) = raw_text(rest) {
        return found;
    }
    if first == '"' || rest.starts_with("b\"") || rest.starts_with("c\"") {
        return quoted(rest, usize::from(first != '"'));
    }
    if rest.starts_with("b'") {
        return character(rest, 1);
    }
    if first == '\'' {
        return character(rest, 0);
    }
    if is_word_start(first) {
        return (Kind::Word, word_length(rest), false);
    }
    if first.is_ascii_digit() {
        return (Kind::Number, number_length(rest), false);
    }
    (Kind::Mark, first.len_utf8(), false)
}

pub fn is_word_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

pub fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn word_length(rest: &str) -> usize {
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// `1`, `1_000`, `0xff`, `1.5`, `1e-3`, `2.0f32`; not the dots of `0..10` or the method of `1.max(2)`.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = word_length(rest);
    if bytes.get(at) == Some(&b'.') {
        match bytes.get(at + 1) {
            Some(next) if next.is_ascii_digit() => at += 1 + word_length(&rest[at + 1..]),
            Some(b'.') => {}
            Some(next) if is_word_start(*next as char) => {}
            _ => at += 1,
        }
    }
    let exponent = at > 0 && matches!(bytes[at - 1], b'e' | b'E') && !rest.starts_with("0x");
    if exponent && matches!(bytes.get(at), Some(b'+' | b'-')) {
        at += 1 + word_length(&rest[at + 1..]);
    }
    at
}

fn block_comment(rest: &str) -> (Kind, usize, bool) {
    let bytes = rest.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return (Kind::Comment, at, false);
            }
        } else {
            at += 1;
        }
    }
    (Kind::Comment, rest.len(), true)
}

fn quoted(rest: &str, prefix: usize) -> (Kind, usize, bool) {
    let bytes = rest.as_bytes();
    let mut at = prefix + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return (Kind::Text, at + 1, false),
            _ => at += 1,
        }
    }
    (Kind::Text, rest.len(), true)
}

fn raw_text(rest: &str) -> Option<(Kind, usize, bool)> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - body.len();
    Some(match body.find(&close) {
        Some(end) => (Kind::Text, start + end + close.len(), false),
        None => (Kind::Text, rest.len(), true),
    })
}

/// `'a'`, `'\n'` or the lifetime `'a`.
fn character(rest: &str, prefix: usize) -> (Kind, usize, bool) {
    let body = &rest[prefix + 1..];
    let mut chars = body.char_indices();
    match chars.next() {
        Some((_, '\\')) => {
            let skip = 1 + body[1..].chars().next().map_or(0, char::len_utf8);
            match body[skip..].find('\'') {
                Some(end) => (Kind::Text, prefix + 1 + skip + end + 1, false),
                None => (Kind::Text, rest.len(), true),
            }
        }
        Some((_, c)) if body[c.len_utf8()..].starts_with('\'') => {
            (Kind::Text, prefix + 1 + c.len_utf8() + 1, false)
        }
        Some((_, c)) if is_word_start(c) => (Kind::Lifetime, prefix + 1 + word_length(body), false),
        _ => (Kind::Mark, prefix + 1, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        scan(source).iter().map(|token| &source[token.range.clone()]).collect()
    }

    #[test]
    fn tokens_keep_their_text() {
        assert_eq!(
            texts("let x=1.5e-3*a.max(2);"),
            ["let", "x", "=", "1.5e-3", "*", "a", ".", "max", "(", "2", ")", ";"]
        );
        assert_eq!(texts("0..10"), ["0", ".", ".", "10"]);
        assert_eq!(texts("1.max(2)"), ["1", ".", "max", "(", "2", ")"]);
        assert_eq!(
            texts("r#\"a\"b\"# 'c' 'a /*x/*y*/*/ // z"),
            ["r#\"a\"b\"#", "'c'", "'a", "/*x/*y*/*/", "// z"]
        );
        assert_eq!(texts("\"a\\\"b\" '\\'' 'é'"), ["\"a\\\"b\"", "'\\''", "'é'"]);
    }

    #[test]
    fn an_open_token_is_marked() {
        for open in ["\"abc", "/* a", "r#\"x\"", "\"a\\"] {
            assert!(scan(open).last().unwrap().open, "{open}");
        }
        assert!(!scan("'a").last().unwrap().open);
    }

    #[test]
    fn any_text_is_scanned_to_its_end() {
        for source in ["'", "é'", "\\", "\"\\é", "'\\", "'\\é", "b'", "r#", "1.", "0x", "💥", "/*"]
        {
            let end = scan(source).last().map_or(0, |token| token.range.end);
            assert!(end >= source.len(), "{source:?}");
        }
    }
}
