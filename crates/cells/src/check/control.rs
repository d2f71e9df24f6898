//! Blocks, branches, loops and the ways out of them.

use super::{Checked, Checker, Loop, Merge, syntax};
use crate::diagnostic::Diagnostic;
use crate::hir;
use crate::hir::{Expr, Kind};
use crate::ir::Span;
use crate::place::{between, span_of};
use crate::ty::{Ty, VarKind};

impl Checker<'_> {
    pub(super) fn block_expr(
        &mut self,
        block: &syn::ExprBlock,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let Some(label) = &block.label else { return self.block(&block.block, expected) };
        let id = self.next_loop;
        self.next_loop += 1;
        let span = syntax::block_span(&block.block);
        self.body().loops.push(Loop {
            id,
            label: Some(label.name.ident.to_string()),
            value: Some(Merge { ty: expected.cloned() }),
            breaks: false,
            is_block: true,
            span,
        });
        let checked = self.block(&block.block, expected);
        let own = self.body().loops.pop().expect("pushed above");
        let mut checked = checked?;
        let mut merge = own.value.expect("made with one");
        if own.breaks {
            self.diverges = false;
            let inner = std::mem::replace(
                &mut checked,
                Expr { kind: Kind::Tuple(Vec::new()), ty: Ty::unit(), span },
            );
            checked = self.merge(&mut merge, inner, expected)?;
            checked.ty = merge.ty.unwrap_or_else(Ty::unit);
        }
        if let Kind::Block(block) = &mut checked.kind {
            block.label = Some(id);
        }
        Ok(checked)
    }

    /// A condition, with any `let`s in a chain of `&&`; their names stay in the current scope.
    pub(super) fn condition(&mut self, expr: &syn::Expr) -> Checked<Expr> {
        match expr {
            syn::Expr::Let(inner) => {
                let value = self.expr(&inner.expr, None)?;
                let span = between(span_of(inner.let_token.span), value.span);
                let ty = value.ty.clone();
                let pattern = self.binding_pattern(&inner.pat, &ty)?;
                let kind = Kind::Let(Box::new(pattern), Box::new(value));
                Ok(Expr { kind, ty: Ty::Bool, span })
            }
            syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
                let left = self.condition(&binary.left)?;
                let right = self.condition(&binary.right)?;
                let span = between(left.span, right.span);
                let kind = Kind::And(Box::new(left), Box::new(right));
                Ok(Expr { kind, ty: Ty::Bool, span })
            }
            other => self.expr_of(other, &Ty::Bool),
        }
    }

    pub(super) fn if_expr(&mut self, branch: &syn::ExprIf, expected: Option<&Ty>) -> Checked<Expr> {
        let start = span_of(branch.if_token.span);
        let mut merge = Merge::default();
        let (condition, then, after_condition) = self.in_scope(|this| {
            let condition = this.condition(&branch.cond)?;
            let after_condition = this.diverges;
            this.diverges = false;
            let then = this.block(&branch.then_branch, expected)?;
            Ok((condition, then, after_condition))
        })?;
        let then_diverges = self.diverges;
        let Some((_, otherwise)) = &branch.else_branch else {
            self.diverges = after_condition;
            let span = between(start, then.span);
            let then_ty = self.infer.shallow(&then.ty);
            if !then_ty.is_unit() && !then_ty.is_never() {
                if self.infer.var_kind(&then_ty) == Some(VarKind::General) {
                    self.equate(&Ty::unit(), &then_ty, then.span)?;
                } else {
                    return Err(Diagnostic::check(
                        "E0317",
                        span,
                        "`if` may be missing an `else` clause",
                    )
                    .label(format!("expected `{}`, found `()`", self.infer.text(&then_ty)))
                    .note("`if` expressions without `else` evaluate to `()`"));
                }
            }
            let Kind::Block(then) = then.kind else { unreachable!("`block` makes blocks") };
            let kind = Kind::If { condition: Box::new(condition), then, otherwise: None };
            return Ok(Expr { kind, ty: Ty::unit(), span });
        };
        let then = self.merge(&mut merge, then, expected)?;
        self.diverges = false;
        // Another function is no mismatch: both become pointers.
        let own = merge
            .ty
            .clone()
            .filter(|ty| !matches!(self.infer.shallow(ty), Ty::FnItem(..) | Ty::Closure(_)));
        let hint = own.or_else(|| expected.cloned());
        let other = self.expr(otherwise, hint.as_ref())?;
        let other_diverges = self.diverges;
        let other = self.merge(&mut merge, other, expected)?;
        self.diverges = after_condition || (then_diverges && other_diverges);
        let span = between(start, other.span);
        let ty = merge.ty.unwrap_or(Ty::Never);
        let Kind::Block(then) = self.as_block(then).kind else {
            unreachable!("`as_block` makes blocks")
        };
        let kind =
            Kind::If { condition: Box::new(condition), then, otherwise: Some(Box::new(other)) };
        Ok(Expr { kind, ty, span })
    }

    /// A coercion may have wrapped the block.
    pub(super) fn as_block(&self, expr: Expr) -> Expr {
        if matches!(expr.kind, Kind::Block(_)) {
            return expr;
        }
        let (ty, span) = (expr.ty.clone(), expr.span);
        let block =
            hir::Block { statements: Vec::new(), tail: Some(Box::new(expr)), span, label: None };
        Expr { kind: Kind::Block(block), ty, span }
    }

    pub(super) fn match_expr(
        &mut self,
        matched: &syn::ExprMatch,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let scrutinee = self.expr(&matched.expr, None)?;
        let span =
            between(span_of(matched.match_token.span), span_of(matched.brace_token.span.close()));
        let after = self.diverges;
        let mut all_diverge = true;
        let mut merge = Merge::default();
        let mut arms = Vec::with_capacity(matched.arms.len());
        let ty = scrutinee.ty.clone();
        for arm in &matched.arms {
            let arm = self.in_scope(|this| {
                let (pattern, guard) = match &arm.pat {
                    syn::Pat::Guard(guarded) => (&*guarded.pat, Some(&*guarded.guard)),
                    pattern => (pattern, None),
                };
                let pattern = this.binding_pattern(pattern, &ty)?;
                let guard = guard.map(|guard| this.condition(guard)).transpose()?;
                this.diverges = false;
                let hint = merge.ty.clone().or_else(|| expected.cloned());
                let body = this.expr(&arm.body, hint.as_ref())?;
                let body = this.merge(&mut merge, body, expected)?;
                Ok(hir::Arm { pattern, guard, body })
            })?;
            all_diverge &= self.diverges;
            arms.push(arm);
        }
        self.diverges = after || all_diverge;
        let ty = merge.ty.unwrap_or(Ty::Never);
        Ok(Expr { kind: Kind::Match(Box::new(scrutinee), arms), ty, span })
    }

    pub(super) fn enter_loop(
        &mut self,
        label: Option<&syn::Label>,
        value: Option<Merge>,
        span: Span,
    ) -> u32 {
        let id = self.next_loop;
        self.next_loop += 1;
        self.body().loops.push(Loop {
            id,
            label: label.map(|label| label.name.ident.to_string()),
            value,
            breaks: false,
            is_block: false,
            span,
        });
        id
    }

    /// The body of a loop: its value is `()`, and what it leaves says nothing about what follows.
    pub(super) fn loop_body(&mut self, block: &syn::Block) -> Checked<hir::Block> {
        let before = self.diverges;
        let unit = Ty::unit();
        let checked = self.block(block, Some(&unit))?;
        let checked = self.coerce(checked, &unit)?;
        self.diverges = before;
        let Kind::Block(block) = self.as_block(checked).kind else {
            unreachable!("`as_block` makes blocks")
        };
        Ok(block)
    }

    pub(super) fn while_expr(&mut self, inner: &syn::ExprWhile) -> Checked<Expr> {
        let start = span_of(inner.while_token.span);
        let before = self.diverges;
        let (id, condition, body) = self.in_scope(|this| {
            let condition = this.condition(&inner.cond)?;
            let id = this.enter_loop(inner.label.as_ref(), None, start);
            let body = this.loop_body(&inner.body);
            this.body().loops.pop();
            Ok((id, condition, body?))
        })?;
        self.diverges = before;
        let span = between(start, body.span);
        let kind = Kind::While { id, condition: Box::new(condition), body };
        Ok(Expr { kind, ty: Ty::unit(), span })
    }

    pub(super) fn loop_expr(
        &mut self,
        inner: &syn::ExprLoop,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let start = span_of(inner.loop_token.span);
        let merge = Merge { ty: expected.filter(|ty| self.infer.var_kind(ty).is_none()).cloned() };
        let id = self.enter_loop(inner.label.as_ref(), Some(merge), start);
        let body = self.loop_body(&inner.body);
        let own = self.body().loops.pop().expect("pushed above");
        let body = body?;
        let ty = match own.value.and_then(|merge| merge.ty) {
            Some(ty) if own.breaks => ty,
            _ if own.breaks => Ty::unit(),
            _ => Ty::Never,
        };
        let span = between(start, body.span);
        Ok(Expr { kind: Kind::Loop { id, body }, ty, span })
    }

    pub(super) fn for_expr(&mut self, inner: &syn::ExprForLoop) -> Checked<Expr> {
        let start = span_of(inner.for_token.span);
        let iterated = self.expr(&inner.expr, None)?;
        let before = self.diverges;
        let _ = self.select();
        let ty = self.infer.shallow(&iterated.ty);
        let Some(item) = self.item_of(&ty) else {
            if self.infer.var_kind(&ty) == Some(VarKind::General) {
                return Err(self.annotation_needed(iterated.span));
            }
            let text = self.infer.text(&ty);
            return Err(Diagnostic::check(
                "E0277",
                iterated.span,
                format!("`{text}` is not an iterator"),
            )
            .label(format!("`{text}` is not an iterator")));
        };
        let (id, pattern, body) = self.in_scope(|this| {
            let pattern = this.binding_pattern(&inner.pat, &item)?;
            let id = this.enter_loop(inner.label.as_ref(), None, start);
            let body = this.loop_body(&inner.body);
            this.body().loops.pop();
            Ok((id, pattern, body?))
        })?;
        self.diverges = before;
        let span = between(start, body.span);
        let kind = Kind::For { id, pattern: Box::new(pattern), iterated: Box::new(iterated), body };
        Ok(Expr { kind, ty: Ty::unit(), span })
    }

    pub(super) fn find_loop(
        &mut self,
        label: Option<&syn::Lifetime>,
        word: &str,
        span: Span,
    ) -> Checked<usize> {
        let inside_closure = self.body().is_closure;
        let loops = &self.body().loops;
        let found = match label {
            Some(label) => {
                let name = label.ident.to_string();
                let found = loops.iter().rposition(|own| own.label.as_ref() == Some(&name));
                if found.is_none() {
                    return Err(Diagnostic::check(
                        "E0426",
                        span_of(label.ident.span()),
                        format!("use of undeclared label `'{name}`"),
                    )
                    .label(format!("undeclared label `'{name}`")));
                }
                found
            }
            None => loops.iter().rposition(|own| !own.is_block),
        };
        found.ok_or_else(|| {
            if inside_closure {
                return Diagnostic::check("E0267", span, format!("`{word}` inside of a closure"))
                    .label(format!("cannot `{word}` inside of a closure"));
            }
            Diagnostic::check("E0268", span, format!("`{word}` outside of a loop or labeled block"))
                .label(format!("cannot `{word}` outside of a loop or labeled block"))
        })
    }

    pub(super) fn break_expr(&mut self, inner: &syn::ExprBreak) -> Checked<Expr> {
        let start = span_of(inner.break_token.span);
        let at = self.find_loop(inner.label.as_ref(), "break", start)?;
        let mut value = None;
        let mut span = start;
        if let Some(expr) = &inner.expr {
            let hint = self.body().loops[at].value.as_ref().and_then(|merge| merge.ty.clone());
            let checked = self.expr(expr, hint.as_ref())?;
            span = between(start, checked.span);
            let Some(mut merge) = self.body().loops[at].value.take() else {
                return Err(Diagnostic::check(
                    "E0571",
                    span,
                    "`break` with value from a loop that is not `loop`",
                )
                .label("can only break with a value inside `loop` or breakable block"));
            };
            let checked = self.merge(&mut merge, checked, None);
            self.body().loops[at].value = Some(merge);
            value = Some(Box::new(checked?));
        } else if let Some(mut merge) = self.body().loops[at].value.take() {
            let unit = Expr { kind: Kind::Tuple(Vec::new()), ty: Ty::unit(), span };
            let merged = self.merge(&mut merge, unit, None);
            self.body().loops[at].value = Some(merge);
            merged?;
        }
        let own = &mut self.body().loops[at];
        own.breaks = true;
        let id = own.id;
        Ok(Expr { kind: Kind::Break(id, value), ty: Ty::Never, span })
    }

    pub(super) fn continue_expr(&mut self, inner: &syn::ExprContinue) -> Checked<Expr> {
        let span = span_of(inner.continue_token.span);
        let at = self.find_loop(inner.label.as_ref(), "continue", span)?;
        let own = &self.body().loops[at];
        if own.is_block {
            let place = own.span;
            return Err(Diagnostic::check("E0696", span, "`continue` pointing to a labeled block")
                .also(place, "labeled block the `continue` points to"));
        }
        let id = own.id;
        Ok(Expr { kind: Kind::Continue(id), ty: Ty::Never, span })
    }

    pub(super) fn return_expr(&mut self, inner: &syn::ExprReturn) -> Checked<Expr> {
        let start = span_of(inner.return_token.span);
        let Some(ret) = self.body().ret.clone() else {
            return Err(Diagnostic::unsupported(
                start,
                "`return` outside of a function or closure",
            ));
        };
        let value = match &inner.expr {
            Some(expr) => Some(self.expr_of(expr, &ret)?),
            None => {
                if self.infer.unify(&ret, &Ty::unit()).is_err() {
                    return Err(Diagnostic::check(
                        "E0069",
                        start,
                        "`return;` in a function whose return type is not `()`",
                    )
                    .label("return type is not `()`"));
                }
                None
            }
        };
        let span = value.as_ref().map_or(start, |value| between(start, value.span));
        Ok(Expr { kind: Kind::Return(value.map(Box::new)), ty: Ty::Never, span })
    }

    /// `value?` of an `Option`.
    pub(super) fn question_mark(&mut self, inner: &syn::ExprTry) -> Checked<Expr> {
        let value = self.expr(&inner.expr, None)?;
        let token = span_of(inner.question_token.span);
        let span = between(value.span, token);
        let ty = self.infer.shallow(&value.ty);
        let Ty::Named("Option", content) = &ty else {
            if self.infer.var_kind(&ty) == Some(VarKind::General) {
                return Err(self.annotation_needed(value.span));
            }
            return Err(Diagnostic::check(
                "E0277",
                token,
                "the `?` operator can only be applied to values that implement `Try`",
            )
            .label(format!(
                "the `?` operator cannot be applied to type `{}`",
                self.infer.text(&ty)
            )));
        };
        let content = content[0].clone();
        let Some(ret) = self.body().ret.clone() else {
            return Err(Diagnostic::unsupported(token, "`?` outside of a function"));
        };
        let returned = Ty::generic("Option", self.infer.fresh());
        if self.infer.unify(&ret, &returned).is_err() {
            return Err(Diagnostic::check(
                "E0277",
                token,
                "the `?` operator can only be used in a function that returns `Result` or `Option`",
            )
            .label(format!(
                "cannot use it in a function that returns `{}`",
                self.infer.text(&ret)
            )));
        }
        Ok(Expr { kind: Kind::Try(Box::new(value)), ty: content, span })
    }
}
