//! What the static check says, and how it is shown: rustc's codes, words and look.

use crate::ir::Span;
use std::fmt::Write as _;

/// Which stage refused the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticKind {
    /// The text is not Rust.
    Parse,
    /// rustc would refuse it, under the same code.
    Check,
    /// Right or wrong, this tier cannot tell: the cell lies outside of its subset.
    Unsupported,
}

/// A place that explains the fault. `cell` is `None` for the cell at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    pub span: Span,
    pub text: String,
    pub cell: Option<u32>,
}

/// One refusal of a cell, before anything ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub kind: DiagnosticKind,
    /// `E0382`; empty for syntax errors and for what is outside of the subset.
    pub code: &'static str,
    pub message: String,
    pub span: Span,
    /// Under the carets.
    pub label: String,
    pub labels: Vec<Label>,
    pub notes: Vec<String>,
    pub help: Vec<String>,
}

impl Diagnostic {
    pub fn check(code: &'static str, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            kind: DiagnosticKind::Check,
            code,
            message: message.into(),
            span,
            label: String::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        })
    }

    pub fn parse(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        let mut diagnostic = Diagnostic::check("", span, message);
        diagnostic.kind = DiagnosticKind::Parse;
        diagnostic
    }

    /// `what` completes the sentence "the instant tier cannot run …".
    pub fn unsupported(span: Span, what: impl Into<String>) -> Box<Diagnostic> {
        let message = format!("the instant tier cannot run {}", what.into());
        let mut diagnostic = Diagnostic::check("", span, message);
        diagnostic.kind = DiagnosticKind::Unsupported;
        diagnostic.label = "outside of the instant subset".into();
        diagnostic
    }

    pub fn label(mut self: Box<Self>, text: impl Into<String>) -> Box<Diagnostic> {
        self.label = text.into();
        self
    }

    pub fn also(mut self: Box<Self>, span: Span, text: impl Into<String>) -> Box<Diagnostic> {
        self.labels.push(Label { span, text: text.into(), cell: None });
        self
    }

    pub fn also_in(
        mut self: Box<Self>,
        cell: Option<u32>,
        span: Span,
        text: impl Into<String>,
    ) -> Box<Diagnostic> {
        self.labels.push(Label { span, text: text.into(), cell });
        self
    }

    pub fn note(mut self: Box<Self>, text: impl Into<String>) -> Box<Diagnostic> {
        self.notes.push(text.into());
        self
    }

    pub fn help(mut self: Box<Self>, text: impl Into<String>) -> Box<Diagnostic> {
        self.help.push(text.into());
        self
    }

    /// The word in `error[…]`, or what stands for it.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            DiagnosticKind::Parse => "syntax",
            DiagnosticKind::Check => self.code,
            DiagnosticKind::Unsupported => "unsupported",
        }
    }
}

/// The diagnostic as rustc would print it, without colour: heading, place, source line, carets,
/// labels, notes and help.
pub fn render(diagnostic: &Diagnostic, source: &str, cell: u32) -> String {
    let heading = match diagnostic.code {
        code if !code.starts_with('E') => format!("error: {}", diagnostic.message),
        code => format!("error[{code}]: {}", diagnostic.message),
    };
    let mut marks = vec![Mark { span: diagnostic.span, text: &diagnostic.label, caret: '^' }];
    let mut elsewhere = Vec::new();
    for label in &diagnostic.labels {
        match label.cell {
            Some(other) if other != cell => {
                elsewhere.push(format!("{} (cell {other}, line {})", label.text, label.span.line))
            }
            _ => marks.push(Mark { span: label.span, text: &label.text, caret: '-' }),
        }
    }
    let mut out = heading;
    out.push('\n');
    out.push_str(&snippet(source, cell, &marks));
    let notes = elsewhere.iter().chain(&diagnostic.notes).map(|text| ("note", text));
    for (word, text) in notes.chain(diagnostic.help.iter().map(|text| ("help", text))) {
        let _ = writeln!(out, "  = {word}: {text}");
    }
    out.truncate(out.trim_end().len());
    out
}

/// The place and the source lines of a fault of the run, for errors that carry no diagnostic.
pub fn render_place(source: &str, cell: u32, span: Span, label: &str) -> String {
    let text = snippet(source, cell, &[Mark { span, text: label, caret: '^' }]);
    text.trim_end().to_string()
}

struct Mark<'a> {
    span: Span,
    text: &'a str,
    caret: char,
}

/// Longer lines are cut around the mark: a caret must be findable in a terminal.
const WIDEST_LINE: usize = 160;

fn snippet(source: &str, cell: u32, marks: &[Mark<'_>]) -> String {
    let Some(first) = marks.first().filter(|mark| mark.span.line > 0) else {
        return String::new();
    };
    let mut lines: Vec<u32> =
        marks.iter().map(|mark| mark.span.line).filter(|line| *line > 0).collect();
    lines.sort_unstable();
    lines.dedup();
    let width = lines.last().map_or(1, |line| line.to_string().len());
    let pad = " ".repeat(width);
    let mut out = format!("{pad}--> cell {cell}:{}:{}\n", first.span.line, first.span.column);
    let _ = writeln!(out, "{pad} |");
    let texts: Vec<&str> = source.split('\n').collect();
    let mut previous = None;
    for line in lines {
        if previous.is_some_and(|before| line > before + 1) {
            let _ = writeln!(out, "...");
        }
        previous = Some(line);
        let text: String = texts
            .get(line as usize - 1)
            .map(|text| text.trim_end_matches('\r').replace('\t', " "))
            .unwrap_or_default();
        let mut here: Vec<&Mark<'_>> = marks.iter().filter(|mark| mark.span.line == line).collect();
        here.sort_by_key(|mark| std::cmp::Reverse(mark.span.column));
        source_line(&mut out, &text, line, width, &here);
    }
    out
}

/// One source line with its marks, right to left; the rightmost mark's words stand beside it.
fn source_line(out: &mut String, text: &str, line: u32, width: usize, marks: &[&Mark<'_>]) {
    let pad = " ".repeat(width);
    let length = text.chars().count();
    let leftmost = marks.iter().map(|mark| mark.span.column as usize - 1).min().unwrap_or(0);
    let skip = if length > WIDEST_LINE { leftmost.saturating_sub(WIDEST_LINE / 3) } else { 0 };
    let shown: String = text.chars().skip(skip).take(WIDEST_LINE).collect();
    let cut = if skip > 0 { "…" } else { "" };
    let _ = writeln!(out, "{line:>width$} | {cut}{shown}");
    let shift = cut.chars().count();
    let extent = |mark: &Mark<'_>| {
        let start = (mark.span.column as usize - 1).saturating_sub(skip);
        let end = if mark.span.end_line > mark.span.line {
            length.saturating_sub(skip)
        } else {
            (mark.span.end_column as usize - 1).saturating_sub(skip)
        };
        let end = end.min(WIDEST_LINE);
        (start + shift, end.max(start + 1) + shift)
    };
    let mut row: Vec<char> = Vec::new();
    for mark in marks {
        let (start, end) = extent(mark);
        if row.len() < end {
            row.resize(end, ' ');
        }
        for cell in &mut row[start..end] {
            if *cell != '^' {
                *cell = mark.caret;
            }
        }
    }
    let row: String = row.into_iter().collect();
    let Some((last, rest)) = marks.split_first() else { return };
    let _ = writeln!(out, "{pad} | {}", format!("{} {}", row.trim_end(), last.text).trim_end());
    for (index, mark) in rest.iter().enumerate() {
        if mark.text.is_empty() {
            continue;
        }
        if index == 0 {
            let _ = writeln!(out, "{pad} | {}|", " ".repeat(extent(mark).0));
        }
        let _ = writeln!(out, "{pad} | {}{}", " ".repeat(extent(mark).0), mark.text);
    }
}
