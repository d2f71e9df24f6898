//! Spans of syntax, found at its edges: asking `syn` would print the tokens of the whole tree.

use crate::ir::Span;
use crate::place::{between, span_of};
use proc_macro2::extra::DelimSpan;
use syn::spanned::Spanned;

pub fn block_span(block: &syn::Block) -> Span {
    delimited(&block.brace_token.span)
}

pub fn delimited(span: &DelimSpan) -> Span {
    between(span_of(span.open()), span_of(span.close()))
}

/// From the first to the last token of an expression.
pub fn span(expr: &syn::Expr) -> Span {
    between(start(expr), end(expr))
}

fn start(expr: &syn::Expr) -> Span {
    let mut expr = expr;
    loop {
        expr = match expr {
            syn::Expr::Binary(inner) => &inner.left,
            syn::Expr::Assign(inner) => &inner.left,
            syn::Expr::MethodCall(inner) => &inner.receiver,
            syn::Expr::Call(inner) => &inner.func,
            syn::Expr::Field(inner) => &inner.base,
            syn::Expr::Index(inner) => &inner.expr,
            syn::Expr::Cast(inner) => &inner.expr,
            syn::Expr::Try(inner) => &inner.expr,
            syn::Expr::Await(inner) => &inner.base,
            syn::Expr::Range(inner) => match &inner.start {
                Some(start) => start,
                None => return span_of(inner.limits.span()),
            },
            other => return edge(other),
        };
    }
}

fn end(expr: &syn::Expr) -> Span {
    let mut expr = expr;
    loop {
        expr = match expr {
            syn::Expr::Binary(inner) => &inner.right,
            syn::Expr::Assign(inner) => &inner.right,
            syn::Expr::Reference(inner) => &inner.expr,
            syn::Expr::Unary(inner) => &inner.expr,
            syn::Expr::Let(inner) => &inner.expr,
            syn::Expr::Closure(inner) => &inner.body,
            syn::Expr::Return(inner) => match &inner.expr {
                Some(value) => value,
                None => return span_of(inner.return_token.span),
            },
            syn::Expr::Break(inner) => match &inner.expr {
                Some(value) => value,
                None => return edge(expr),
            },
            syn::Expr::Range(inner) => match &inner.end {
                Some(end) => end,
                None => return span_of(inner.limits.span()),
            },
            syn::Expr::If(inner) => match &inner.else_branch {
                Some((_, otherwise)) => otherwise,
                None => return block_span(&inner.then_branch),
            },
            syn::Expr::While(inner) => return block_span(&inner.body),
            syn::Expr::Loop(inner) => return block_span(&inner.body),
            syn::Expr::ForLoop(inner) => return block_span(&inner.body),
            syn::Expr::Match(inner) => return span_of(inner.brace_token.span.close()),
            syn::Expr::Call(inner) => return span_of(inner.paren_token.span.close()),
            syn::Expr::MethodCall(inner) => return span_of(inner.paren_token.span.close()),
            syn::Expr::Index(inner) => return span_of(inner.bracket_token.span.close()),
            syn::Expr::Field(inner) => return span_of(inner.member.span()),
            syn::Expr::Cast(inner) => return span_of(inner.ty.span()),
            syn::Expr::Try(inner) => return span_of(inner.question_token.span),
            other => return edge(other),
        };
    }
}

/// Expressions whose own tokens enclose them, or that are small.
fn edge(expr: &syn::Expr) -> Span {
    match expr {
        syn::Expr::Paren(inner) => delimited(&inner.paren_token.span),
        syn::Expr::Tuple(inner) => delimited(&inner.paren_token.span),
        syn::Expr::Array(inner) => delimited(&inner.bracket_token.span),
        syn::Expr::Repeat(inner) => delimited(&inner.bracket_token.span),
        syn::Expr::Block(inner) => block_span(&inner.block),
        syn::Expr::Unsafe(inner) => {
            between(span_of(inner.unsafe_token.span), block_span(&inner.block))
        }
        syn::Expr::If(inner) => span_of(inner.if_token.span),
        syn::Expr::While(inner) => span_of(inner.while_token.span),
        syn::Expr::Loop(inner) => span_of(inner.loop_token.span),
        syn::Expr::ForLoop(inner) => span_of(inner.for_token.span),
        syn::Expr::Match(inner) => span_of(inner.match_token.span),
        syn::Expr::Reference(inner) => span_of(inner.and_token.span),
        syn::Expr::Unary(inner) => span_of(inner.op.span()),
        syn::Expr::Let(inner) => span_of(inner.let_token.span),
        syn::Expr::Return(inner) => span_of(inner.return_token.span),
        syn::Expr::Closure(inner) => match &inner.capture {
            Some(capture) => span_of(capture.span),
            None => span_of(inner.inputs_begin.span),
        },
        syn::Expr::Lit(inner) => span_of(inner.lit.span()),
        other => span_of(other.span()),
    }
}

/// `move |a, b|`.
pub fn closure_head(closure: &syn::ExprClosure) -> Span {
    let start = match &closure.capture {
        Some(capture) => span_of(capture.span),
        None => span_of(closure.inputs_begin.span),
    };
    between(start, span_of(closure.inputs_end.span))
}
