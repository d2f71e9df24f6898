//! Expressions.

use super::{Checked, Checker, syntax};
use crate::diagnostic::Diagnostic;
use crate::hir::{Expr, Kind};
use crate::ir::Span;
use crate::place::span_of;
use crate::ty::{ClosureKind, FloatKind, FnSig, IntKind, Ty, VarKind};
use crate::value::Value;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number for a type that no other has.
pub fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What the place that a closure is passed to wants.
#[derive(Clone, Debug)]
pub struct WantedClosure {
    pub kind: ClosureKind,
    pub sig: FnSig,
}

impl Checker<'_> {
    /// The expression and its type. `expected` is a hint; the caller coerces.
    pub(super) fn expr(&mut self, expr: &syn::Expr, expected: Option<&Ty>) -> Checked<Expr> {
        let checked = match expr {
            syn::Expr::Lit(literal) => self.literal(&literal.lit, expected),
            syn::Expr::Path(path) => self.path(path, expected),
            syn::Expr::Paren(inner) => {
                let mut checked = self.expr(&inner.expr, expected)?;
                checked.span = syntax::delimited(&inner.paren_token.span);
                Ok(checked)
            }
            syn::Expr::Group(inner) => self.expr(&inner.expr, expected),
            syn::Expr::Binary(_) => self.binary_chain(expr),
            syn::Expr::Unary(unary) => self.unary(unary, expected),
            syn::Expr::Reference(reference) => self.reference(reference, expected),
            syn::Expr::Call(call) => self.call(call, expected),
            syn::Expr::MethodCall(call) => self.method_call(call, expected),
            syn::Expr::Field(field) => self.field(field),
            syn::Expr::Index(index) => self.index(index),
            syn::Expr::Tuple(tuple) => self.tuple(tuple, expected),
            syn::Expr::Array(array) => self.array(array, expected),
            syn::Expr::Repeat(repeat) => self.repeat(repeat, expected),
            syn::Expr::Range(range) => self.range(range),
            syn::Expr::Block(block) => self.block_expr(block, expected),
            syn::Expr::If(branch) => self.if_expr(branch, expected),
            syn::Expr::Match(matched) => self.match_expr(matched, expected),
            syn::Expr::While(inner) => self.while_expr(inner),
            syn::Expr::Loop(inner) => self.loop_expr(inner, expected),
            syn::Expr::ForLoop(inner) => self.for_expr(inner),
            syn::Expr::Break(inner) => self.break_expr(inner),
            syn::Expr::Continue(inner) => self.continue_expr(inner),
            syn::Expr::Return(inner) => self.return_expr(inner),
            syn::Expr::Struct(literal) => self.struct_literal(literal),
            syn::Expr::Closure(closure) => self.closure(closure, None),
            syn::Expr::Assign(assign) => self.assign(assign),
            syn::Expr::Cast(cast) => self.cast(cast),
            syn::Expr::Macro(call) => {
                let span = span_of(syn::spanned::Spanned::span(&call.mac));
                self.macro_call(&call.mac, span, expected)
            }
            syn::Expr::Try(inner) => self.question_mark(inner),
            syn::Expr::Let(_) => Err(Diagnostic::parse(
                syntax::span(expr),
                "expected expression, found `let` statement",
            )),
            other => Err(self.outside(other)),
        }?;
        if self.infer.shallow(&checked.ty).is_never() {
            self.diverges = true;
        }
        Ok(checked)
    }

    pub(super) fn outside(&self, expr: &syn::Expr) -> Box<Diagnostic> {
        let what = match expr {
            syn::Expr::Async(_) | syn::Expr::Await(_) => "`async` code",
            syn::Expr::Unsafe(_) => "`unsafe` code",
            syn::Expr::Const(_) => "`const` blocks",
            syn::Expr::Infer(_) => "`_` as a value",
            syn::Expr::RawAddr(_) => "raw pointers",
            _ => "this expression",
        };
        Diagnostic::unsupported(syntax::span(expr), what)
    }

    /// An expression whose value must be of the type.
    pub(super) fn expr_of(&mut self, expr: &syn::Expr, expected: &Ty) -> Checked<Expr> {
        let checked = self.expr(expr, Some(expected))?;
        self.coerce(checked, expected)
    }

    pub(super) fn literal(&mut self, lit: &syn::Lit, expected: Option<&Ty>) -> Checked<Expr> {
        let span = span_of(lit.span());
        let make = |value: Value, ty: Ty| Ok(Expr { kind: Kind::Literal(value), ty, span });
        match lit {
            syn::Lit::Bool(value) => make(Value::Bool(value.value), Ty::Bool),
            syn::Lit::Char(value) => make(Value::Char(value.value()), Ty::Char),
            syn::Lit::Str(text) => make(Value::text(text.value()), Ty::reference(Ty::Str)),
            syn::Lit::Byte(byte) => {
                make(Value::Int(i128::from(byte.value())), Ty::Int(IntKind::U8))
            }
            syn::Lit::Float(float) => {
                let Ok(value) = float.base10_digits().parse::<f64>() else {
                    return Err(Diagnostic::parse(span, "invalid float literal"));
                };
                match float.suffix() {
                    "" => {
                        let ty = self.float_ty(expected);
                        make(Value::Float(value), ty)
                    }
                    "f32" => {
                        make(Value::Float(FloatKind::F32.round(value)), Ty::Float(FloatKind::F32))
                    }
                    "f64" => make(Value::Float(value), Ty::f64()),
                    suffix => Err(Diagnostic::parse(
                        span,
                        format!("invalid suffix `{suffix}` for float literal"),
                    )),
                }
            }
            syn::Lit::Int(int) => self.int_literal(int, span, expected),
            _ => Err(Diagnostic::unsupported(span, "this literal")),
        }
    }

    pub(super) fn float_ty(&mut self, expected: Option<&Ty>) -> Ty {
        match expected.map(|ty| self.infer.shallow(ty)) {
            Some(ty @ Ty::Float(_)) => ty,
            _ => self.infer.fresh_of(VarKind::Float),
        }
    }

    pub(super) fn int_literal(
        &mut self,
        int: &syn::LitInt,
        span: Span,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let digits = int.base10_digits();
        let make = |value: Value, ty: Ty| Ok(Expr { kind: Kind::Literal(value), ty, span });
        let float = |kind: FloatKind| match digits.parse::<f64>() {
            Ok(value) => make(Value::Float(kind.round(value)), Ty::Float(kind)),
            Err(_) => Err(Diagnostic::parse(span, "invalid float literal")),
        };
        let Ok(value) = digits.parse::<i128>() else {
            return Err(Diagnostic::parse(span, "integer literal is too large"));
        };
        match int.suffix() {
            "" => {
                let ty = match expected.map(|ty| self.infer.shallow(ty)) {
                    Some(ty @ Ty::Int(_)) => ty,
                    _ => self.infer.fresh_of(VarKind::Int),
                };
                make(Value::Int(value), ty)
            }
            "f32" => float(FloatKind::F32),
            "f64" => float(FloatKind::F64),
            "u128" => Err(Diagnostic::unsupported(span, "`u128` values")),
            suffix => match IntKind::parse(suffix) {
                Some(kind) => make(Value::Int(value), Ty::Int(kind)),
                None => Err(Diagnostic::parse(
                    span,
                    format!("invalid suffix `{suffix}` for number literal"),
                )),
            },
        }
    }

    pub(super) fn annotation_needed(&self, span: Span) -> Box<Diagnostic> {
        Diagnostic::check("E0282", span, "type annotations needed").label("cannot infer type")
    }
}
