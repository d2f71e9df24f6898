//! Diagnostics, faults and refusals as one kind of error, rendered with the place.

use crate::commands::Refusal;
use crate::event::{CellError, TextSpan};
use crate::oom;
use crate::parts::Part;
use crate::rewrite::{Rewritten, restore_text};
use crate::session::Running;
use vramlab_array::ir::{Fault, FaultKind, Span};
use vramlab_cells::{Diagnostic, render, render_place};
use vramlab_runtime::Context;

/// What the static check said. Nothing ran.
pub fn of_diagnostic(
    mut diagnostic: Diagnostic,
    rewritten: &Rewritten,
    source: &str,
    cell: u32,
) -> CellError {
    let restore = |span: &mut Span| *span = to_span(rewritten.restore(of_span(*span)));
    restore(&mut diagnostic.span);
    for label in &mut diagnostic.labels {
        if label.cell.is_none_or(|other| other == cell) {
            restore(&mut label.span);
        }
        label.text = restore_text(&label.text);
    }
    diagnostic.message = restore_text(&diagnostic.message);
    diagnostic.label = restore_text(&diagnostic.label);
    for text in diagnostic.notes.iter_mut().chain(&mut diagnostic.help) {
        *text = restore_text(text);
    }
    CellError {
        kind: diagnostic.kind_name().to_string(),
        message: diagnostic.message.clone(),
        cell,
        span: Some(of_span(diagnostic.span)),
        rendered: render(&diagnostic, source, cell),
    }
}

/// What happened while the cell ran; `calling` is where the cell itself stood.
pub fn of_fault(
    fault: &Fault,
    calling: Option<Span>,
    context: &Context,
    running: &Running,
) -> CellError {
    let span = fault.span.filter(|_| fault.cell == running.cell || fault.cell == 0);
    let source = &running.source;
    let elsewhere = match (fault.cell, fault.span) {
        (cell, Some(span)) if cell != 0 && cell != running.cell => {
            Some(format!("cell {cell}, line {}", span.line))
        }
        _ => None,
    };
    let calling = calling.filter(|_| elsewhere.is_some());
    let rendered = match (fault.kind, context.last_oom()) {
        (FaultKind::OutOfMemory, Some(report)) => {
            let call = span.map(|span| source_of(source, span)).unwrap_or_default();
            let line = span.map_or(report.site.line, |span| span.line);
            let here = || format!("cell {}, line {}", running.cell, line.max(1));
            let place = elsewhere.unwrap_or_else(here);
            oom::render(&report, running.jit_passes.as_deref(), &fault.op, &call, &place)
        }
        _ => with_place(fault, elsewhere, span.or(calling), running),
    };
    CellError {
        kind: fault.kind.code().to_string(),
        message: restore_text(&fault.to_string()),
        cell: running.cell,
        span: span.or(calling).map(of_span),
        rendered: restore_text(&rendered),
    }
}

/// The place in another cell, if it lies there, and the one in this cell.
fn with_place(
    fault: &Fault,
    elsewhere: Option<String>,
    here: Option<Span>,
    running: &Running,
) -> String {
    let mut text = format!("error[{}]: {fault}", fault.kind.code());
    if let Some(elsewhere) = &elsewhere {
        text.push_str(&format!("\n --> {elsewhere}"));
    }
    if let Some(span) = here.filter(|span| span.line > 0) {
        let label = if elsewhere.is_some() { "called here" } else { "" };
        text.push('\n');
        text.push_str(&render_place(&running.source, running.cell, span, label));
    }
    if let Some(help) = &fault.help {
        text.push_str(&format!("\n  = help: {help}"));
    }
    text
}

/// The text of a span when it lies in one line and is short: `zeros([400, 1024, 256])`.
fn source_of(source: &str, span: Span) -> String {
    if span.line == 0 || span.end_line != span.line {
        return String::new();
    }
    let line = source.split('\n').nth(span.line as usize - 1).unwrap_or("");
    let length = span.end_column.saturating_sub(span.column) as usize;
    let text: String = line.chars().skip(span.column as usize - 1).take(length).collect();
    if text.chars().count() > LONGEST_CALL { String::new() } else { text }
}

const LONGEST_CALL: usize = 60;

/// What a command did not do.
pub fn of_refusal(refusal: &Refusal, part: Option<&Part>, running: &Running) -> CellError {
    let span = part.map(|part| line_span(&running.source, part.line));
    let mut rendered = format!("error[{}]: {}", refusal.kind, refusal.message);
    if let Some(help) = &refusal.help {
        rendered.push_str(&format!("\n  = help: {help}"));
    }
    CellError {
        kind: refusal.kind.to_string(),
        message: refusal.message.clone(),
        cell: running.cell,
        span,
        rendered,
    }
}

/// A whole line without its indentation.
fn line_span(source: &str, line: u32) -> TextSpan {
    let text = source.split('\n').nth(line as usize - 1).unwrap_or("");
    let indent = text.chars().take_while(|c| c.is_whitespace()).count() as u32;
    let end = text.trim_end().chars().count() as u32;
    TextSpan { line, column: indent + 1, end_line: line, end_column: end.max(indent) + 1 }
}

pub fn of_span(span: Span) -> TextSpan {
    TextSpan {
        line: span.line,
        column: span.column,
        end_line: span.end_line,
        end_column: span.end_column,
    }
}

fn to_span(span: TextSpan) -> Span {
    Span {
        line: span.line,
        column: span.column,
        end_line: span.end_line,
        end_column: span.end_column,
    }
}
