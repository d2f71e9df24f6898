//! Closures and assignment.

use super::expr::{WantedClosure, unique};
use super::{Body, Checked, Checker, syntax};
use crate::diagnostic::Diagnostic;
use crate::hir;
use crate::hir::{Expr, Kind, Pattern, PatternKind};
use crate::ir::Span;
use crate::place::{between, span_of};
use crate::ty::{ClosureTy, FnSig, Ty, VarKind};
use std::sync::Arc;

impl Checker<'_> {
    pub(super) fn closure(
        &mut self,
        closure: &syn::ExprClosure,
        wanted: Option<WantedClosure>,
    ) -> Checked<Expr> {
        let head = syntax::closure_head(closure);
        if closure.asyncness.is_some() {
            return Err(Diagnostic::unsupported(head, "`async` closures"));
        }
        if let Some(wanted) = &wanted
            && wanted.sig.params.len() != closure.inputs.len()
        {
            let (have, want) = (closure.inputs.len(), wanted.sig.params.len());
            return Err(Diagnostic::check(
                "E0593",
                head,
                format!(
                    "closure is expected to take {want} argument(s), but it takes {have} \
                     argument(s)"
                ),
            )
            .label(format!("takes {have} argument(s)")));
        }
        let ret = match &closure.output {
            syn::ReturnType::Type(_, ty) => self.user_type(ty)?,
            syn::ReturnType::Default => match &wanted {
                Some(wanted) => wanted.sig.ret.clone(),
                None => self.infer.fresh(),
            },
        };
        let before = std::mem::replace(&mut self.diverges, false);
        let body_id = self.next_body;
        self.next_body += 1;
        self.bodies.push(Body {
            id: body_id,
            ret: Some(ret.clone()),
            is_closure: true,
            loops: Vec::new(),
        });
        let checked = self.in_scope(|this| {
            let mut params = Vec::new();
            let mut types = Vec::new();
            for (index, input) in closure.inputs.iter().enumerate() {
                let hint = wanted.as_ref().map(|wanted| wanted.sig.params[index].clone());
                let (pattern, ty) = this.parameter(input, hint)?;
                params.push(pattern);
                types.push(ty);
            }
            let body = this.expr(&closure.body, Some(&ret))?;
            let body = this.coerce(body, &ret)?;
            Ok((params, types, body))
        });
        self.bodies.pop();
        self.diverges = before;
        let (params, types, body) = checked?;
        if self.infer.shallow(&body.ty).is_never()
            && self.infer.var_kind(&ret) == Some(VarKind::General)
        {
            let _ = self.infer.unify(&ret, &Ty::Never);
        }
        let span = between(head, body.span);
        let ty = Ty::Closure(Arc::new(ClosureTy {
            id: unique(),
            sig: FnSig { params: types, ret },
            facts: Arc::default(),
        }));
        let kind = Kind::Closure(Box::new(hir::Closure {
            body_id,
            params,
            body,
            by_move: closure.capture.is_some(),
            wanted: wanted.map(|wanted| wanted.kind),
            head,
        }));
        Ok(Expr { kind, ty, span })
    }

    /// A closure's parameter, annotated or not.
    pub(super) fn parameter(
        &mut self,
        input: &syn::Pat,
        hint: Option<Ty>,
    ) -> Checked<(Pattern, Ty)> {
        let (pattern, ty) = match input {
            syn::Pat::Type(typed) => {
                let ty = self.user_type(&typed.ty)?;
                if let Some(hint) = &hint
                    && self.infer.unify(hint, &ty).is_err()
                {
                    let span = span_of(syn::spanned::Spanned::span(&typed.ty));
                    return Err(Diagnostic::check(
                        "E0631",
                        span,
                        "type mismatch in closure arguments",
                    )
                    .label(format!(
                        "expected `{}`, found `{}`",
                        self.infer.text(hint),
                        self.infer.text(&ty)
                    )));
                }
                (&*typed.pat, ty)
            }
            pattern => {
                let ty = match hint {
                    Some(hint) => hint,
                    None => self.infer.fresh(),
                };
                (pattern, ty)
            }
        };
        let checked = self.binding_pattern(pattern, &ty)?;
        Ok((checked, ty))
    }

    pub(super) fn assign(&mut self, assign: &syn::ExprAssign) -> Checked<Expr> {
        let unit = Ty::unit();
        if let syn::Expr::Infer(_) = &*assign.left {
            let value = self.expr(&assign.right, None)?;
            let span = between(syntax::span(&assign.left), value.span);
            let pattern = Pattern { kind: PatternKind::Wild, ty: value.ty.clone(), span };
            let kind = Kind::Destructure(pattern, Box::new(value));
            return Ok(Expr { kind, ty: unit, span });
        }
        let takes_apart = match &*assign.left {
            syn::Expr::Tuple(_) | syn::Expr::Array(_) | syn::Expr::Struct(_) => true,
            syn::Expr::Call(call) => self.is_constructor(&call.func),
            _ => false,
        };
        if takes_apart {
            let pattern = self.assign_pattern(&assign.left)?;
            let value = self.expr_of(&assign.right, &pattern.ty.clone())?;
            let span = between(pattern.span, value.span);
            let kind = Kind::Destructure(pattern, Box::new(value));
            return Ok(Expr { kind, ty: unit, span });
        }
        let place = self.expr(&assign.left, None)?;
        self.assignable(&place, span_of(assign.eq_token.span), "E0070")?;
        let value = self.expr_of(&assign.right, &place.ty.clone())?;
        let span = between(place.span, value.span);
        let kind = Kind::Assign(Box::new(place), Box::new(value));
        Ok(Expr { kind, ty: unit, span })
    }

    fn is_constructor(&self, function: &syn::Expr) -> bool {
        let syn::Expr::Path(path) = function else { return false };
        let name = path.path.get_ident().map(ToString::to_string);
        name.is_some_and(|name| self.struct_in_pattern(&name).is_some())
    }

    /// The left side of `(a, b) = …` as a pattern of places.
    pub(super) fn assign_pattern(&mut self, expr: &syn::Expr) -> Checked<Pattern> {
        let span = syntax::span(expr);
        match expr {
            syn::Expr::Infer(_) => {
                Ok(Pattern { kind: PatternKind::Wild, ty: self.infer.fresh(), span })
            }
            syn::Expr::Tuple(tuple) => {
                let parts: Checked<Vec<Pattern>> =
                    tuple.elems.iter().map(|element| self.assign_pattern(element)).collect();
                let parts = parts?;
                let ty = Ty::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
                Ok(Pattern { kind: PatternKind::Tuple(parts), ty, span })
            }
            syn::Expr::Array(array) => {
                let parts: Checked<Vec<Pattern>> =
                    array.elems.iter().map(|element| self.assign_pattern(element)).collect();
                let before = parts?;
                let element = self.infer.fresh();
                for part in &before {
                    self.equate(&element, &part.ty, part.span)?;
                }
                let ty = Ty::array_of(element, before.len() as u64);
                let kind = PatternKind::Slice { before, rest: None, after: Vec::new() };
                Ok(Pattern { kind, ty, span })
            }
            place => {
                if let Some(pattern) = self.assign_struct(place, span)? {
                    return Ok(pattern);
                }
                let checked = self.expr(place, None)?;
                self.assignable(&checked, span, "E0070")?;
                let ty = checked.ty.clone();
                Ok(Pattern { kind: PatternKind::Assign(Box::new(checked)), ty, span })
            }
        }
    }

    /// Something that can stand left of `=`.
    pub(super) fn assignable(&self, place: &Expr, at: Span, code: &'static str) -> Checked<()> {
        let fits = matches!(
            place.kind,
            Kind::Local(_) | Kind::Field(..) | Kind::Index(..) | Kind::Deref(_) | Kind::Member(..)
        );
        if fits {
            return Ok(());
        }
        Err(Diagnostic::check(code, at, "invalid left-hand side of assignment")
            .also(place.span, "cannot assign to this expression"))
    }
}
