//! `Out[3]` and `_` become names that the checker knows, before it sees the cell; spans come back.

use crate::event::TextSpan;
use crate::scan::{Kind, Token, scan};

/// The variable that keeps `Out[number]`: as long as what the user wrote.
pub fn out_name(number: u32) -> String {
    format!("Out_{number}_")
}

/// The number of a variable made by [`out_name`].
pub fn out_number(name: &str) -> Option<u32> {
    name.strip_prefix("Out_")?.strip_suffix('_')?.parse().ok()
}

/// A text without the inner names.
pub fn restore_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("Out_") {
        let length = rest[start + 4..].bytes().take_while(u8::is_ascii_digit).count();
        let end = start + 4 + length;
        out.push_str(&rest[..start]);
        if length > 0 && rest[end..].starts_with('_') {
            out.push_str(&format!("Out[{}]", &rest[start + 4..end]));
            rest = &rest[end + 1..];
        } else {
            out.push_str("Out_");
            rest = &rest[start + 4..];
        }
    }
    out.push_str(rest);
    out
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    pub text: String,
    /// Numbers of the outputs that the text names.
    pub used: Vec<u32>,
    shifts: Vec<Shift>,
}

/// One replacement that changed the length: on `line`, the new text began at `column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shift {
    line: u32,
    column: u32,
    old: u32,
    new: u32,
}

/// `last`: what `_` stands for.
pub fn rewrite(source: &str, last: Option<u32>) -> Rewritten {
    let tokens: Vec<Token> =
        scan(source).into_iter().filter(|token| token.kind != Kind::Comment).collect();
    let mut result = Rewritten::default();
    let mut copied = 0;
    let mut index = 0;
    while index < tokens.len() {
        let found = output_at(source, &tokens, index).or_else(|| {
            underscore_at(source, &tokens, index).then_some(()).and(last).map(|n| (n, 1))
        });
        let Some((number, length)) = found else {
            index += 1;
            continue;
        };
        let range = tokens[index].range.start..tokens[index + length - 1].range.end;
        result.text.push_str(&source[copied..range.start]);
        result.replace(&source[range.clone()], &out_name(number));
        result.used.push(number);
        copied = range.end;
        index += length;
    }
    result.text.push_str(&source[copied..]);
    result
}

impl Rewritten {
    fn replace(&mut self, old: &str, new: &str) {
        let line = self.text.matches('\n').count() as u32 + 1;
        let column = self.text.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1;
        let (old, count) = (old.chars().count() as u32, new.chars().count() as u32);
        if old != count {
            self.shifts.push(Shift { line, column, old, new: count });
        }
        self.text.push_str(new);
    }

    /// A span of the rewritten text, in the user's text.
    pub fn restore(&self, span: TextSpan) -> TextSpan {
        TextSpan {
            column: self.restore_column(span.line, span.column),
            end_column: self.restore_column(span.end_line, span.end_column),
            ..span
        }
    }

    fn restore_column(&self, line: u32, column: u32) -> u32 {
        let mut moved = 0i64;
        for shift in self.shifts.iter().filter(|shift| shift.line == line) {
            if column <= shift.column {
                break;
            }
            if column < shift.column + shift.new {
                // Inside the replaced text: its start.
                return (i64::from(shift.column) + moved).max(1) as u32;
            }
            moved += i64::from(shift.old) - i64::from(shift.new);
        }
        (i64::from(column) + moved).max(1) as u32
    }
}

/// `Out [ 3 ]`, not behind a dot or a path.
fn output_at(source: &str, tokens: &[Token], index: usize) -> Option<(u32, usize)> {
    let [name, open, number, close] = tokens.get(index..index + 4)? else { return None };
    let behind = index.checked_sub(1).map(|before| tokens[before].text(source));
    let shape = name.text(source) == "Out"
        && open.is_mark(source, '[')
        && number.kind == Kind::Number
        && close.is_mark(source, ']')
        && !matches!(behind, Some("." | ":"));
    let digits = number.text(source);
    (shape && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok().map(|number| (number, 4)))?
}

/// Whether the `_` here is a value, not a pattern or a type.
fn underscore_at(source: &str, tokens: &[Token], index: usize) -> bool {
    if tokens[index].text(source) != "_" {
        return false;
    }
    let text = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|token| token.text(source));
    let before = text(index.checked_sub(1));
    let after = text(Some(index + 1));
    if matches!(before, Some("let" | "for" | "as" | "<" | ":" | "|" | "mut" | "ref")) {
        return false;
    }
    match after {
        Some("." | "+" | "-" | "*" | "/" | "%" | "?") => true,
        Some("[") => true,
        None | Some(";") => before != Some("["),
        Some(")" | "]" | "," | "}") => !is_pattern_list(source, tokens, index),
        _ => false,
    }
}

/// Whether the brackets around `index` close into a pattern: `(a, _) =>`, `|[_, b]|`, `let (a, _) =`.
fn is_pattern_list(source: &str, tokens: &[Token], index: usize) -> bool {
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate().skip(index + 1) {
        match token.text(source) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            ";" if depth <= 0 => return false,
            _ => {}
        }
        if depth < 0 {
            let next = tokens.get(at + 1).map(|token| token.text(source));
            let second = tokens.get(at + 2).map(|token| token.text(source));
            match next {
                Some("|" | "in" | "if" | ":") => return true,
                Some("=") => return second != Some("="),
                Some(")" | "]" | "}" | ",") => {}
                _ => return false,
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        rewrite(source, Some(7)).text
    }

    #[test]
    fn outputs_become_names_of_the_same_length() {
        assert_eq!(text("Out[3] + Out[12].sum()"), "Out_3_ + Out_12_.sum()");
        assert_eq!(text("x.Out[3]"), "x.Out[3]");
        assert_eq!(text("\"Out[3]\" // Out[3]"), "\"Out[3]\" // Out[3]");
        assert_eq!(rewrite("Out[3]", None).used, [3]);
    }

    #[test]
    fn an_underscore_is_the_last_output_only_as_a_value() {
        for (source, expected) in [
            ("_", "Out_7_"),
            ("_ * 2.0", "Out_7_ * 2.0"),
            ("f([&_, &x])", "f([&Out_7_, &x])"),
            ("let y = _;", "let y = Out_7_;"),
            ("_.sum()", "Out_7_.sum()"),
            ("let _ = 3;", "let _ = 3;"),
            ("let (a, _) = t;", "let (a, _) = t;"),
            ("|[_, b]| b", "|[_, b]| b"),
            ("match t { (1, _) => 2, _ => 3 }", "match t { (1, _) => 2, _ => 3 }"),
            ("for _ in 0..3 {}", "for _ in 0..3 {}"),
            ("let v: Vec<_> = w;", "let v: Vec<_> = w;"),
            ("let v: [_; 3] = w;", "let v: [_; 3] = w;"),
        ] {
            assert_eq!(text(source), expected);
        }
        assert_eq!(rewrite("_ + 1", None).text, "_ + 1");
    }

    #[test]
    fn spans_come_back() {
        let rewritten = rewrite("a\n_ + bad", Some(12));
        let at = |column, end_column| TextSpan { line: 2, column, end_line: 2, end_column };
        // `Out_12_ + bad`: bad stands at 11.
        assert_eq!(rewritten.restore(at(11, 14)), at(5, 8));
        assert_eq!(rewritten.restore(at(1, 8)), at(1, 2));
        assert_eq!(
            restore_text("use of moved value: `Out_3_`, Out_x"),
            "use of moved value: `Out[3]`, Out_x"
        );
    }
}
