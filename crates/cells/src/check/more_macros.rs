//! `matches!`, `dbg!`, `write!` and `writeln!`, as their definitions in Rust's library expand.

use super::macros::{FormatInput, borrowed};
use super::{Checked, Checker, syntax};
use crate::diagnostic::Diagnostic;
use crate::hir::{
    Arm, Binding, Block, Expr, Format, Kind, Pattern, PatternKind, Piece, Spec, Statement, Style,
};
use crate::ir::Span;
use crate::ty::Ty;
use crate::value::Value;
use syn::parse::{Parse, ParseStream};

/// `value, pattern if guard`.
pub(super) struct MatchesInput {
    value: syn::Expr,
    pattern: syn::Pat,
    guard: Option<syn::Expr>,
}

impl Parse for MatchesInput {
    fn parse(input: ParseStream<'_>) -> syn::Result<MatchesInput> {
        let value = input.parse()?;
        input.parse::<syn::Token![,]>()?;
        let pattern = syn::Pat::parse_multi_with_leading_vert(input)?;
        let guard = match input.parse::<Option<syn::Token![if]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        input.parse::<Option<syn::Token![,]>>()?;
        Ok(MatchesInput { value, pattern, guard })
    }
}

/// `target, "…", arguments`.
pub(super) struct WriteInput {
    target: syn::Expr,
    format: FormatInput,
}

impl Parse for WriteInput {
    fn parse(input: ParseStream<'_>) -> syn::Result<WriteInput> {
        let target = input.parse()?;
        if !input.is_empty() {
            input.parse::<syn::Token![,]>()?;
        }
        Ok(WriteInput { target, format: input.parse()? })
    }
}

impl Checker<'_> {
    pub(super) fn matches(&mut self, input: &MatchesInput, span: Span) -> Checked<Expr> {
        let value = self.expr(&input.value, None)?;
        let ty = value.ty.clone();
        let after = self.diverges;
        let literal = |truth| Expr { kind: Kind::Literal(Value::Bool(truth)), ty: Ty::Bool, span };
        let arm = self.in_scope(|this| {
            let pattern = this.binding_pattern(&input.pattern, &ty)?;
            let guard = input.guard.as_ref().map(|guard| this.condition(guard)).transpose()?;
            Ok(Arm { pattern, guard, body: literal(true) })
        })?;
        self.diverges = after;
        let wild = Pattern { kind: PatternKind::Wild, ty, span };
        let other = Arm { pattern: wild, guard: None, body: literal(false) };
        let kind = Kind::Match(Box::new(value), vec![arm, other]);
        Ok(Expr { kind, ty: Ty::Bool, span })
    }

    /// The value is told on standard error and given back.
    pub(super) fn dbg_macro(
        &mut self,
        values: &syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>,
        span: Span,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let place = format!("[{}:{}]", span.line, span.column);
        if values.is_empty() {
            let format = Format { pieces: vec![Piece::Text(place)], arguments: Vec::new() };
            let kind = Kind::Print { format, error: true, newline: true };
            return Ok(Expr { kind, ty: Ty::unit(), span });
        }
        let mut told = Vec::with_capacity(values.len());
        for value in values {
            let hint = if values.len() == 1 { expected } else { None };
            told.push(self.told(value, &place, hint, span)?);
        }
        if told.len() == 1
            && let Some(only) = told.pop()
        {
            return Ok(only);
        }
        let ty = Ty::Tuple(told.iter().map(|one| one.ty.clone()).collect());
        Ok(Expr { kind: Kind::Tuple(told), ty, span })
    }

    /// `match value { kept => { eprintln!("…", kept); kept } }`.
    fn told(
        &mut self,
        value: &syn::Expr,
        place: &str,
        expected: Option<&Ty>,
        span: Span,
    ) -> Checked<Expr> {
        let words = self.text(syntax::span(value));
        let value = self.expr(value, expected)?;
        let ty = value.ty.clone();
        if self.infer.shallow(&ty).is_never() {
            return Ok(value);
        }
        let body = self.in_scope(|this| {
            let local = this.new_local("kept", ty.clone(), false, span);
            let kept = || Expr { kind: Kind::Local(local), ty: ty.clone(), span };
            let spec = Spec { style: Style::Debug, alternate: true, ..Spec::default() };
            let pieces = vec![
                Piece::Text(format!("{place} {words} = ")),
                Piece::Value { argument: 0, spec },
            ];
            let arguments = vec![borrowed(kept())];
            this.format_bounds(&pieces, &arguments)?;
            let format = Format { pieces, arguments };
            let print = Kind::Print { format, error: true, newline: true };
            let print = Expr { kind: print, ty: Ty::unit(), span };
            let block = Block {
                statements: vec![Statement::Expr(print)],
                tail: Some(Box::new(kept())),
                span,
                label: None,
            };
            let kind = PatternKind::Bind { local, by: Binding::Value, inner: None };
            let pattern = Pattern { kind, ty: ty.clone(), span };
            let body = Expr { kind: Kind::Block(block), ty: ty.clone(), span };
            Ok(Arm { pattern, guard: None, body })
        })?;
        Ok(Expr { kind: Kind::Match(Box::new(value), vec![body]), ty, span })
    }

    /// `write!(text, …)`, with `std::fmt::Write` in scope.
    pub(super) fn write_macro(
        &mut self,
        input: WriteInput,
        newline: bool,
        span: Span,
    ) -> Checked<Expr> {
        let target = self.expr(&input.target, None)?;
        let at = target.span;
        let target = self.peel(target)?;
        let ty = self.infer.shallow(&target.ty);
        if !ty.is_named("String") || !self.can_write() {
            let text = self.infer.text(&ty);
            let fault = Diagnostic::check("E0599", at, format!("cannot write into `{text}`"));
            return Err(match ty.is_named("String") {
                true => fault.help("bring its trait into scope: `use std::fmt::Write;`"),
                false => fault
                    .note("must implement `io::Write`, `fmt::Write`, or have a `write_fmt` method"),
            });
        }
        let mut format = self.format(input.format, span)?;
        if newline {
            format.pieces.push(Piece::Text("\n".into()));
        }
        let ty = Ty::Named("Result", [Ty::unit(), Ty::named("std::fmt::Error")].into());
        Ok(Expr { kind: Kind::Write { target: Box::new(target), format }, ty, span })
    }

    /// `std::fmt::Write` was brought into scope.
    fn can_write(&self) -> bool {
        self.scopes.iter().any(|scope| scope.writes) || self.names.writes()
    }
}

/// `use std::fmt::Write;`, also among others.
pub(super) fn imports_write(tree: &syn::UseTree) -> bool {
    fn walk(tree: &syn::UseTree, path: &mut Vec<String>) -> bool {
        match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                let found = walk(&inner.tree, path);
                path.pop();
                found
            }
            syn::UseTree::Name(name) => name.ident == "Write" && is_fmt(path),
            syn::UseTree::Rename(rename) => rename.ident == "Write" && is_fmt(path),
            syn::UseTree::Group(group) => {
                !group.items.is_empty() && group.items.iter().all(|item| walk(item, path))
            }
            _ => false,
        }
    }
    walk(tree, &mut Vec::new())
}

fn is_fmt(path: &[String]) -> bool {
    matches!(path, [krate, module] if matches!(krate.as_str(), "std" | "core") && module == "fmt")
}
