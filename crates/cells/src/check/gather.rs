//! Expressions that gather values: tuples, arrays and ranges.

use super::{Checked, Checker, Merge, syntax};
use crate::hir::{Expr, Kind};
use crate::place::{between, span_of};
use crate::ty::Ty;
use crate::value::Value;

impl Checker<'_> {
    pub(super) fn tuple(&mut self, tuple: &syn::ExprTuple, expected: Option<&Ty>) -> Checked<Expr> {
        let span = syntax::delimited(&tuple.paren_token.span);
        let hints: Vec<Option<Ty>> = match expected.map(|ty| self.infer.shallow(ty)) {
            Some(Ty::Tuple(parts)) => parts.iter().cloned().map(Some).collect(),
            _ => Vec::new(),
        };
        let mut parts = Vec::with_capacity(tuple.elems.len());
        for (index, element) in tuple.elems.iter().enumerate() {
            let hint = hints.get(index).cloned().flatten();
            let checked = self.expr(element, hint.as_ref())?;
            parts.push(match hint {
                Some(hint) if tuple.elems.len() == hints.len() => self.coerce(checked, &hint)?,
                _ => checked,
            });
        }
        let ty = Ty::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
        Ok(Expr { kind: Kind::Tuple(parts), ty, span })
    }

    pub(super) fn array(&mut self, array: &syn::ExprArray, expected: Option<&Ty>) -> Checked<Expr> {
        let span = syntax::delimited(&array.bracket_token.span);
        let hint = self.element_hint(expected);
        let (elements, ty) = self.elements(array.elems.iter(), hint)?;
        let ty = Ty::array_of(ty, elements.len() as u64);
        Ok(Expr { kind: Kind::List(elements), ty, span })
    }

    pub(super) fn element_hint(&self, expected: Option<&Ty>) -> Option<Ty> {
        match expected.map(|ty| self.infer.shallow(ty)) {
            Some(Ty::Array(element, _) | Ty::Slice(element)) => Some((*element).clone()),
            Some(Ty::Named("Vec", arguments)) => Some(arguments[0].clone()),
            _ => None,
        }
    }

    pub(super) fn elements<'e>(
        &mut self,
        elements: impl Iterator<Item = &'e syn::Expr>,
        hint: Option<Ty>,
    ) -> Checked<(Vec<Expr>, Ty)> {
        let mut out = Vec::new();
        let mut merge = Merge::default();
        for element in elements {
            let want = merge.ty.clone().or_else(|| hint.clone());
            let checked = self.expr(element, want.as_ref())?;
            out.push(self.merge(&mut merge, checked, hint.as_ref())?);
        }
        let ty = match merge.ty.or(hint) {
            Some(ty) => ty,
            None => self.infer.fresh(),
        };
        Ok((out, ty))
    }

    pub(super) fn repeat(
        &mut self,
        repeat: &syn::ExprRepeat,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let span = syntax::delimited(&repeat.bracket_token.span);
        let hint = self.element_hint(expected);
        let element = self.expr(&repeat.expr, hint.as_ref())?;
        let length = self.length_of(&repeat.len)?;
        let count = Expr {
            kind: Kind::Literal(Value::Int(i128::from(length))),
            ty: Ty::usize(),
            span: syntax::span(&repeat.len),
        };
        if length > 1 {
            self.require(&element.ty.clone(), "Copy", &[], element.span);
        }
        let ty = Ty::array_of(element.ty.clone(), length);
        Ok(Expr { kind: Kind::Repeat(Box::new(element), Box::new(count)), ty, span })
    }

    pub(super) fn range(&mut self, range: &syn::ExprRange) -> Checked<Expr> {
        let limits = span_of(syn::spanned::Spanned::span(&range.limits));
        let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
        let start = match &range.start {
            Some(start) => Some(self.expr(start, None)?),
            None => None,
        };
        let hint = start.as_ref().map(|start| start.ty.clone());
        let end = match &range.end {
            Some(end) => Some(self.expr(end, hint.as_ref())?),
            None => None,
        };
        let mut span = limits;
        if let Some(start) = &start {
            span = between(start.span, span);
        }
        if let Some(end) = &end {
            span = between(span, end.span);
        }
        let bound = match (&start, &end) {
            (Some(start), Some(end)) => {
                self.equate(&start.ty, &end.ty, end.span)?;
                Some(start.ty.clone())
            }
            (Some(one), None) | (None, Some(one)) => Some(one.ty.clone()),
            (None, None) => None,
        };
        let name = match (&start, &end, inclusive) {
            (Some(_), Some(_), false) => "Range",
            (Some(_), Some(_), true) => "RangeInclusive",
            (Some(_), None, _) => "RangeFrom",
            (None, Some(_), false) => "RangeTo",
            (None, Some(_), true) => "RangeToInclusive",
            (None, None, _) => "RangeFull",
        };
        let ty = match bound {
            Some(bound) => Ty::generic(name, bound),
            None => Ty::named("RangeFull"),
        };
        let kind = Kind::Range { start: start.map(Box::new), end: end.map(Box::new), inclusive };
        Ok(Expr { kind, ty, span })
    }
}
