//! Reaching into values: references, fields, indices, one-operand operators and casts.

use super::expr::WantedClosure;
use super::{Checked, Checker, Pending};
use crate::diagnostic::Diagnostic;
use crate::hir::{Expr, Kind};
use crate::ir::Span;
use crate::library;
use crate::place::{between, span_of};
use crate::structs::{Associated, StructDef};
use crate::ty::{ClosureKind, IntKind, Ty, VarKind};
use crate::value::Value;
use std::sync::Arc;

impl Checker<'_> {
    pub(super) fn reference(
        &mut self,
        reference: &syn::ExprReference,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let mutable = reference.mutability.is_some();
        let hint = match expected.map(|ty| self.infer.shallow(ty)) {
            Some(Ty::Ref(_, to)) => match self.infer.shallow(&to) {
                Ty::Slice(_) | Ty::Str | Ty::DynFn(_) => None,
                other => Some(other),
            },
            _ => None,
        };
        let wanted = match expected.map(|ty| self.infer.shallow(ty)) {
            Some(Ty::Ref(_, to)) => match self.infer.shallow(&to) {
                Ty::DynFn(sig) => {
                    Some(WantedClosure { kind: ClosureKind::Fn, sig: (*sig).clone() })
                }
                _ => None,
            },
            _ => None,
        };
        let place = match (&*reference.expr, wanted) {
            (syn::Expr::Closure(closure), Some(wanted)) => self.closure(closure, Some(wanted))?,
            (expr, _) => self.expr(expr, hint.as_ref())?,
        };
        let span = between(span_of(reference.and_token.span), place.span);
        let ty = Ty::Ref(mutable, Arc::new(place.ty.clone()));
        Ok(Expr { kind: Kind::Borrow(mutable, Box::new(place)), ty, span })
    }

    pub(super) fn unary(&mut self, unary: &syn::ExprUnary, expected: Option<&Ty>) -> Checked<Expr> {
        let start = span_of(syn::spanned::Spanned::span(&unary.op));
        match &unary.op {
            syn::UnOp::Deref(_) => {
                let inner = self.expr(&unary.expr, None)?;
                let span = between(start, inner.span);
                self.dereference(inner, span)
            }
            syn::UnOp::Not(_) => {
                let inner = self.expr(&unary.expr, expected)?;
                let _ = self.select();
                let span = between(start, inner.span);
                let ty = self.infer.shallow(&inner.ty);
                let bare = match &ty {
                    Ty::Ref(_, to) => self.infer.shallow(to),
                    other => other.clone(),
                };
                let fits = matches!(bare, Ty::Bool | Ty::Int(_) | Ty::Never)
                    || self.infer.var_kind(&bare) == Some(VarKind::Int);
                if self.infer.var_kind(&bare) == Some(VarKind::General) {
                    return Err(self.annotation_needed(inner.span));
                }
                if !fits {
                    return Err(self.bad_unary("!", &ty, span));
                }
                Ok(Expr { kind: Kind::Not(Box::new(inner)), ty: bare, span })
            }
            syn::UnOp::Neg(_) => {
                let inner = self.expr(&unary.expr, expected)?;
                let span = between(start, inner.span);
                self.negate(inner, span)
            }
            _ => Err(Diagnostic::unsupported(start, "this operator")),
        }
    }

    pub(super) fn negate(&mut self, inner: Expr, span: Span) -> Checked<Expr> {
        let _ = self.select();
        let ty = self.infer.shallow(&inner.ty);
        let bare = match &ty {
            Ty::Ref(_, to) => self.infer.shallow(to),
            other => other.clone(),
        };
        match &bare {
            Ty::Float(_) | Ty::Named("Array", _) => {}
            Ty::Int(kind) if kind.is_signed() => {}
            Ty::Var(_) if self.infer.var_kind(&bare) == Some(VarKind::Int) => {
                self.pending.push(Pending::Negate { ty: bare.clone(), span });
            }
            Ty::Var(_) if self.infer.var_kind(&bare) == Some(VarKind::Float) => {}
            Ty::Var(_) => return Err(self.annotation_needed(inner.span)),
            _ => return Err(self.bad_unary("-", &ty, span)),
        }
        if let Kind::Literal(value) = &inner.kind {
            let negated = match value {
                Value::Int(value) => Some(Value::Int(-value)),
                Value::Float(value) => Some(Value::Float(-value)),
                _ => None,
            };
            if let Some(value) = negated {
                return Ok(Expr { kind: Kind::Literal(value), ty: bare, span });
            }
        }
        Ok(Expr { kind: Kind::Negate(Box::new(inner)), ty: bare, span })
    }

    pub(super) fn bad_unary(&self, symbol: &str, ty: &Ty, span: Span) -> Box<Diagnostic> {
        let text = self.infer.text(ty);
        let label = match symbol {
            "!" => "cannot apply unary operator `!`".to_string(),
            _ => format!("cannot apply unary operator `{symbol}`"),
        };
        Diagnostic::check(
            "E0600",
            span,
            format!("cannot apply unary operator `{symbol}` to type `{text}`"),
        )
        .label(label)
    }

    pub(super) fn dereference(&mut self, inner: Expr, span: Span) -> Checked<Expr> {
        let ty = self.infer.shallow(&inner.ty);
        match &ty {
            Ty::Ref(_, to) => {
                let ty = (**to).clone();
                Ok(Expr { kind: Kind::Deref(Box::new(inner)), ty, span })
            }
            Ty::Named("Box", arguments) => {
                let ty = arguments[0].clone();
                Ok(Expr { kind: Kind::Field(Box::new(inner), u32::MAX), ty, span })
            }
            _ => Err(Diagnostic::check(
                "E0614",
                span,
                format!("type `{}` cannot be dereferenced", self.infer.text(&ty)),
            )
            .label("can't be dereferenced")),
        }
    }

    pub(super) fn field(&mut self, field: &syn::ExprField) -> Checked<Expr> {
        let base = self.expr(&field.base, None)?;
        let member_span = span_of(syn::spanned::Spanned::span(&field.member));
        let span = between(base.span, member_span);
        let base = self.peel_boxes(base)?;
        let ty = self.infer.shallow(&base.ty);
        if self.infer.var_kind(&ty) == Some(VarKind::General) {
            return Err(self.annotation_needed(base.span));
        }
        if let Ty::Struct(def) = &ty {
            let name = match &field.member {
                syn::Member::Named(name) => name.to_string(),
                syn::Member::Unnamed(index) => index.index.to_string(),
            };
            let Some(at) = def.position(&name) else {
                return Err(self.no_own_field(def, &name, member_span));
            };
            let ty = def.fields()[at].clone();
            return Ok(Expr { kind: Kind::Field(Box::new(base), at as u32), ty, span });
        }
        match (&field.member, &ty) {
            (syn::Member::Unnamed(index), Ty::Tuple(parts)) => {
                match parts.get(index.index as usize) {
                    Some(part) => {
                        let part = part.clone();
                        Ok(Expr { kind: Kind::Field(Box::new(base), index.index), ty: part, span })
                    }
                    None => Err(self.no_field(&index.index.to_string(), &ty, member_span)),
                }
            }
            (syn::Member::Named(name), Ty::Named(record, _)) => {
                let text = name.to_string();
                if let Ty::Named("Range" | "RangeInclusive" | "RangeFrom", bounds) = &ty
                    && let Some(field) = match text.as_str() {
                        "start" if *record != "RangeInclusive" => Some("start"),
                        "end" if *record == "Range" => Some("end"),
                        _ => None,
                    }
                {
                    let ty = bounds[0].clone();
                    return Ok(Expr { kind: Kind::Member(Box::new(base), field), ty, span });
                }
                if let Some((field, ty)) = library::record_field(record, &text) {
                    return Ok(Expr { kind: Kind::Member(Box::new(base), field), ty, span });
                }
                Err(self.no_field(&text, &ty, member_span))
            }
            (member, _) => {
                let text = match member {
                    syn::Member::Named(name) => name.to_string(),
                    syn::Member::Unnamed(index) => index.index.to_string(),
                };
                Err(self.no_field(&text, &ty, member_span))
            }
        }
    }

    pub(super) fn no_field(&self, name: &str, ty: &Ty, span: Span) -> Box<Diagnostic> {
        let text = self.infer.text(ty);
        if ty.is_scalar() || self.infer.var_kind(ty).is_some() {
            return Diagnostic::check(
                "E0610",
                span,
                format!("`{text}` is a primitive type and therefore doesn't have fields"),
            );
        }
        if library::has_method(ty, name) {
            return Diagnostic::check(
                "E0615",
                span,
                format!("attempted to take value of method `{name}` on type `{text}`"),
            )
            .label("method, not a field")
            .help(format!("use parentheses to call the method: `{name}()`"));
        }
        Diagnostic::check("E0609", span, format!("no field `{name}` on type `{text}`"))
            .label("unknown field")
    }

    fn no_own_field(&self, def: &StructDef, name: &str, span: Span) -> Box<Diagnostic> {
        let own = def.name();
        if let Some(Associated::Function { receiver: Some(_), .. }) =
            self.associated_with(def, name)
        {
            return Diagnostic::check(
                "E0615",
                span,
                format!("attempted to take value of method `{name}` on type `{own}`"),
            )
            .label("method, not a field")
            .help(format!("use parentheses to call the method: `{name}()`"));
        }
        let fault = Diagnostic::check("E0609", span, format!("no field `{name}` on type `{own}`"))
            .label("unknown field");
        let known: Vec<&str> = def.names.fields.iter().map(|field| &**field).collect();
        match library::nearest(name, known.iter().copied()) {
            Some(near) => fault.help(format!("a field with a similar name exists: `{near}`")),
            None if known.is_empty() => fault,
            None => fault.note(format!("available fields are: {}", known.join(", "))),
        }
    }

    /// References and boxes are looked through.
    fn peel_boxes(&mut self, expr: Expr) -> Checked<Expr> {
        let mut expr = self.peel(expr)?;
        while let Ty::Named("Box", inner) = self.infer.shallow(&expr.ty) {
            let span = expr.span;
            let kind = Kind::Field(Box::new(expr), u32::MAX);
            expr = self.peel(Expr { kind, ty: inner[0].clone(), span })?;
        }
        Ok(expr)
    }

    /// References are looked through.
    pub(super) fn peel(&mut self, mut expr: Expr) -> Checked<Expr> {
        loop {
            let Ty::Ref(_, to) = self.infer.shallow(&expr.ty) else { return Ok(expr) };
            let span = expr.span;
            expr = Expr { kind: Kind::Deref(Box::new(expr)), ty: (*to).clone(), span };
        }
    }

    pub(super) fn index(&mut self, index: &syn::ExprIndex) -> Checked<Expr> {
        let base = self.expr(&index.expr, None)?;
        let span = between(base.span, span_of(index.bracket_token.span.close()));
        let base = self.peel(base)?;
        let ty = self.infer.shallow(&base.ty);
        let at = self.expr(&index.index, None)?;
        let _ = self.select();
        let at_ty = self.infer.shallow(&at.ty);
        let element = match &ty {
            Ty::Named("Vec", arguments) => arguments[0].clone(),
            Ty::Array(element, _) | Ty::Slice(element) => (**element).clone(),
            Ty::Str | Ty::Named("String", _) => {
                if !at_ty_is_range(&at_ty) {
                    let text = self.infer.text(&ty);
                    return Err(Diagnostic::check(
                        "E0277",
                        at.span,
                        format!(
                            "the type `{text}` cannot be indexed by `{}`",
                            self.infer.text(&at_ty)
                        ),
                    )
                    .label("string indices are ranges of `usize`"));
                }
                self.usize_range(&at_ty, at.span)?;
                let kind = Kind::Index(Box::new(base), Box::new(at));
                return Ok(Expr { kind, ty: Ty::Str, span });
            }
            _ if self.infer.var_kind(&ty) == Some(VarKind::General) => {
                return Err(self.annotation_needed(base.span));
            }
            _ => {
                let text = self.infer.text(&ty);
                return Err(Diagnostic::check(
                    "E0608",
                    span,
                    format!("cannot index into a value of type `{text}`"),
                ));
            }
        };
        let ty = match &at_ty {
            Ty::Int(IntKind::Usize) => element,
            Ty::Var(_) if self.infer.var_kind(&at_ty) == Some(VarKind::Int) => {
                self.equate(&Ty::usize(), &at_ty, at.span)?;
                element
            }
            _ if at_ty_is_range(&at_ty) => {
                self.usize_range(&at_ty, at.span)?;
                Ty::Slice(Arc::new(element))
            }
            _ => {
                let (base, at_text) = (self.infer.text(&element), self.infer.text(&at_ty));
                return Err(Diagnostic::check(
                    "E0277",
                    at.span,
                    format!("the type `[{base}]` cannot be indexed by `{at_text}`"),
                )
                .label("slice indices are of type `usize` or ranges of `usize`"));
            }
        };
        Ok(Expr { kind: Kind::Index(Box::new(base), Box::new(at)), ty, span })
    }

    pub(super) fn usize_range(&mut self, ty: &Ty, span: Span) -> Checked<()> {
        if let Ty::Named(_, arguments) = ty
            && let Some(bound) = arguments.first()
        {
            let bound = bound.clone();
            self.equate(&Ty::usize(), &bound, span)?;
        }
        Ok(())
    }

    pub(super) fn cast(&mut self, cast: &syn::ExprCast) -> Checked<Expr> {
        let to = self.user_type(&cast.ty)?;
        // Only a literal takes its type from the cast.
        let literal = match super::call::strip(&cast.expr) {
            syn::Expr::Lit(_) => true,
            syn::Expr::Unary(unary) => {
                matches!(super::call::strip(&unary.expr), syn::Expr::Lit(_))
            }
            _ => false,
        };
        let inner = self.expr(&cast.expr, literal.then_some(&to))?;
        let end = span_of(syn::spanned::Spanned::span(&cast.ty));
        let span = between(inner.span, end);
        self.pending.push(Pending::Cast { from: inner.ty.clone(), to: to.clone(), span });
        self.select()?;
        Ok(Expr { kind: Kind::Cast(Box::new(inner)), ty: to, span })
    }
}

fn at_ty_is_range(ty: &Ty) -> bool {
    matches!(
        ty,
        Ty::Named(
            "Range" | "RangeInclusive" | "RangeFrom" | "RangeTo" | "RangeToInclusive" | "RangeFull",
            _
        )
    )
}
