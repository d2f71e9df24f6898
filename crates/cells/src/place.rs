//! `proc-macro2`'s spans as the project's: 1-based, in characters, the end exclusive.

use crate::ir::Span;

pub fn span_of(span: proc_macro2::Span) -> Span {
    let (start, end) = (span.start(), span.end());
    Span {
        line: start.line as u32,
        column: start.column as u32 + 1,
        end_line: end.line as u32,
        end_column: end.column as u32 + 1,
    }
}

/// From the start of one to the end of the other.
pub fn between(start: Span, end: Span) -> Span {
    Span {
        line: start.line,
        column: start.column,
        end_line: end.end_line,
        end_column: end.end_column,
    }
}
