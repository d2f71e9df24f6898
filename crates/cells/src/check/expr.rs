//! Expressions.

use super::{Body, Checked, Checker, Entity, Loop, Merge, Pending, syntax};
use crate::diagnostic::Diagnostic;
use crate::hir::{self, Expr, Kind, Pattern, PatternKind};
use crate::ir::Span;
use crate::library;
use crate::place::{between, span_of};
use crate::ty::{ClosureKind, ClosureTy, FloatKind, FnSig, IntKind, Ty, VarKind};
use crate::value::Value;
use std::sync::Arc;
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

    fn outside(&self, expr: &syn::Expr) -> Box<Diagnostic> {
        let what = match expr {
            syn::Expr::Async(_) | syn::Expr::Await(_) => "`async` code",
            syn::Expr::Unsafe(_) => "`unsafe` code",
            syn::Expr::Struct(_) => "structs",
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

    fn float_ty(&mut self, expected: Option<&Ty>) -> Ty {
        match expected.map(|ty| self.infer.shallow(ty)) {
            Some(ty @ Ty::Float(_)) => ty,
            _ => self.infer.fresh_of(VarKind::Float),
        }
    }

    fn int_literal(
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

    fn path(&mut self, path: &syn::ExprPath, expected: Option<&Ty>) -> Checked<Expr> {
        let span = span_of(syn::spanned::Spanned::span(&path.path));
        if path.qself.is_some() {
            return Err(Diagnostic::unsupported(span, "qualified paths"));
        }
        if let Some(ident) = path.path.get_ident() {
            let name = ident.to_string();
            return self.name(&name, span, expected);
        }
        let segments: Vec<String> =
            path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some((ty, value)) = library::associated_constant(&segments) {
            return Ok(Expr { kind: Kind::Literal(value), ty, span });
        }
        if segments.len() == 1 {
            let checked = self.name(&segments[0], span, expected)?;
            return match path.path.segments.last().map(|segment| &segment.arguments) {
                Some(syn::PathArguments::AngleBracketed(angle)) => {
                    self.none_of(checked, angle, span)
                }
                _ => Ok(checked),
            };
        }
        if let [owner, name] = segments.as_slice()
            && let Some(ty) = library::owner_type(owner)
            && let Some(candidate) = library::find_method(&ty, name, &self.infer)
        {
            return self.method_value(candidate, &ty, span);
        }
        Err(self.unknown_path(&segments, span))
    }

    /// `None::<T>`.
    fn none_of(
        &mut self,
        none: Expr,
        angle: &syn::AngleBracketedGenericArguments,
        span: Span,
    ) -> Checked<Expr> {
        let Ty::Named("Option", arguments) = self.infer.shallow(&none.ty) else {
            return Err(Diagnostic::unsupported(span, "generic arguments here"));
        };
        if let Some(syn::GenericArgument::Type(ty)) = angle.args.first() {
            let ty = self.user_type(ty)?;
            self.equate(&ty, &arguments[0].clone(), span)?;
        }
        Ok(none)
    }

    pub(super) fn unknown_path(&self, segments: &[String], span: Span) -> Box<Diagnostic> {
        let text = segments.join("::");
        if let [owner, name] = segments
            && let Some(ty) = crate::signature::builtin_type(owner)
            && library::method_of(&ty, name, None).is_none()
        {
            return Diagnostic::check(
                "E0599",
                span,
                format!(
                    "no associated item named `{name}` found for type `{ty}` in the current scope"
                ),
            )
            .label(format!("associated item not found in `{ty}`"));
        }
        let known = crate::signature::builtin_type(&segments[0]).is_some()
            || library::is_known_type(&segments[0]);
        if known || segments[0] == "std" || segments[0] == "core" {
            return Diagnostic::unsupported(span, format!("the path `{text}`"));
        }
        Diagnostic::check(
            "E0433",
            span,
            format!(
                "failed to resolve: use of unresolved module or unlinked crate `{}`",
                segments[0]
            ),
        )
        .label(format!("use of undeclared `{}`", segments[0]))
    }

    fn name(&mut self, name: &str, span: Span, expected: Option<&Ty>) -> Checked<Expr> {
        match self.lookup(name, span)? {
            Some(Entity::Local(id)) => {
                let ty = self.locals[id as usize].ty.clone();
                Ok(Expr { kind: Kind::Local(id), ty, span })
            }
            Some(Entity::Function(cell)) => {
                let ty = Ty::FnItem(cell.id, cell.sig.clone());
                Ok(Expr { kind: Kind::Function(cell), ty, span })
            }
            Some(Entity::Constant(ty, value)) => Ok(Expr { kind: Kind::Literal(value), ty, span }),
            None if name == "None" => {
                let inner = match expected.map(|ty| self.infer.shallow(ty)) {
                    Some(Ty::Named("Option", arguments)) => arguments[0].clone(),
                    _ => self.infer.fresh(),
                };
                let ty = Ty::generic("Option", inner);
                Ok(Expr { kind: Kind::Literal(Value::none()), ty, span })
            }
            None => self.prelude_name(name, span),
        }
    }

    fn prelude_name(&mut self, name: &str, span: Span) -> Checked<Expr> {
        if let Some(item) = library::surface_constant(name) {
            let ty = library::constant_type(item);
            return Ok(Expr { kind: Kind::Constant(item), ty, span });
        }
        if library::surface_function(name).is_some() || library::function(name).is_some() {
            return Err(Diagnostic::unsupported(
                span,
                format!("the function `{name}` as a value; wrap it: `|x| {name}(x)`"),
            ));
        }
        if crate::signature::builtin_type(name).is_some() || library::is_known_type(name) {
            return Err(Diagnostic::check(
                "E0423",
                span,
                format!("expected value, found type `{name}`"),
            )
            .label("not a value"));
        }
        Err(self.unknown_name(name, span, "value"))
    }

    pub(super) fn unknown_name(&self, name: &str, span: Span, what: &str) -> Box<Diagnostic> {
        let fault =
            Diagnostic::check("E0425", span, format!("cannot find {what} `{name}` in this scope"));
        match self.nearest(name) {
            Some((near, kind)) => {
                fault.label(format!("help: a {kind} with a similar name exists: `{near}`"))
            }
            None => fault.label("not found in this scope"),
        }
    }

    fn nearest(&self, name: &str) -> Option<(String, &'static str)> {
        let mut candidates: Vec<(String, &'static str)> = Vec::new();
        for scope in &self.scopes {
            for (name, entity) in &scope.names {
                let kind = match entity {
                    Entity::Local(_) => "local variable",
                    Entity::Function(_) => "function",
                    Entity::Constant(..) => "constant",
                };
                candidates.push((name.clone(), kind));
            }
        }
        candidates.extend(self.names.all().into_iter().map(|name| (name, "local variable")));
        candidates.extend(library::function_names().map(|name| (name.to_string(), "function")));
        candidates.extend(library::constant_names().map(|name| (name.to_string(), "constant")));
        let best = library::nearest(name, candidates.iter().map(|(name, _)| name.as_str()))?;
        candidates.into_iter().find(|(name, _)| *name == best)
    }

    fn reference(
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

    fn unary(&mut self, unary: &syn::ExprUnary, expected: Option<&Ty>) -> Checked<Expr> {
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

    fn negate(&mut self, inner: Expr, span: Span) -> Checked<Expr> {
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

    fn field(&mut self, field: &syn::ExprField) -> Checked<Expr> {
        let base = self.expr(&field.base, None)?;
        let member_span = span_of(syn::spanned::Spanned::span(&field.member));
        let span = between(base.span, member_span);
        let base = self.peel(base)?;
        let ty = self.infer.shallow(&base.ty);
        if self.infer.var_kind(&ty) == Some(VarKind::General) {
            return Err(self.annotation_needed(base.span));
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

    fn no_field(&self, name: &str, ty: &Ty, span: Span) -> Box<Diagnostic> {
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

    /// References are looked through.
    pub(super) fn peel(&mut self, mut expr: Expr) -> Checked<Expr> {
        loop {
            let Ty::Ref(_, to) = self.infer.shallow(&expr.ty) else { return Ok(expr) };
            let span = expr.span;
            expr = Expr { kind: Kind::Deref(Box::new(expr)), ty: (*to).clone(), span };
        }
    }

    fn index(&mut self, index: &syn::ExprIndex) -> Checked<Expr> {
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

    fn usize_range(&mut self, ty: &Ty, span: Span) -> Checked<()> {
        if let Ty::Named(_, arguments) = ty
            && let Some(bound) = arguments.first()
        {
            let bound = bound.clone();
            self.equate(&Ty::usize(), &bound, span)?;
        }
        Ok(())
    }

    fn tuple(&mut self, tuple: &syn::ExprTuple, expected: Option<&Ty>) -> Checked<Expr> {
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

    fn array(&mut self, array: &syn::ExprArray, expected: Option<&Ty>) -> Checked<Expr> {
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

    fn repeat(&mut self, repeat: &syn::ExprRepeat, expected: Option<&Ty>) -> Checked<Expr> {
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

    fn range(&mut self, range: &syn::ExprRange) -> Checked<Expr> {
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

    fn block_expr(&mut self, block: &syn::ExprBlock, expected: Option<&Ty>) -> Checked<Expr> {
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
    fn condition(&mut self, expr: &syn::Expr) -> Checked<Expr> {
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

    fn if_expr(&mut self, branch: &syn::ExprIf, expected: Option<&Ty>) -> Checked<Expr> {
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
        let hint = merge.ty.clone().or_else(|| expected.cloned());
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
    fn as_block(&self, expr: Expr) -> Expr {
        if matches!(expr.kind, Kind::Block(_)) {
            return expr;
        }
        let (ty, span) = (expr.ty.clone(), expr.span);
        let block =
            hir::Block { statements: Vec::new(), tail: Some(Box::new(expr)), span, label: None };
        Expr { kind: Kind::Block(block), ty, span }
    }

    fn match_expr(&mut self, matched: &syn::ExprMatch, expected: Option<&Ty>) -> Checked<Expr> {
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

    fn enter_loop(&mut self, label: Option<&syn::Label>, value: Option<Merge>, span: Span) -> u32 {
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
    fn loop_body(&mut self, block: &syn::Block) -> Checked<hir::Block> {
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

    fn while_expr(&mut self, inner: &syn::ExprWhile) -> Checked<Expr> {
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

    fn loop_expr(&mut self, inner: &syn::ExprLoop, expected: Option<&Ty>) -> Checked<Expr> {
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

    fn for_expr(&mut self, inner: &syn::ExprForLoop) -> Checked<Expr> {
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

    fn find_loop(
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

    fn break_expr(&mut self, inner: &syn::ExprBreak) -> Checked<Expr> {
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

    fn continue_expr(&mut self, inner: &syn::ExprContinue) -> Checked<Expr> {
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

    fn return_expr(&mut self, inner: &syn::ExprReturn) -> Checked<Expr> {
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
    fn question_mark(&mut self, inner: &syn::ExprTry) -> Checked<Expr> {
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
    fn parameter(&mut self, input: &syn::Pat, hint: Option<Ty>) -> Checked<(Pattern, Ty)> {
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

    fn assign(&mut self, assign: &syn::ExprAssign) -> Checked<Expr> {
        let unit = Ty::unit();
        if let syn::Expr::Infer(_) = &*assign.left {
            let value = self.expr(&assign.right, None)?;
            let span = between(syntax::span(&assign.left), value.span);
            let pattern = Pattern { kind: PatternKind::Wild, ty: value.ty.clone(), span };
            let kind = Kind::Destructure(pattern, Box::new(value));
            return Ok(Expr { kind, ty: unit, span });
        }
        if matches!(&*assign.left, syn::Expr::Tuple(_) | syn::Expr::Array(_)) {
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

    /// The left side of `(a, b) = …` as a pattern of places.
    fn assign_pattern(&mut self, expr: &syn::Expr) -> Checked<Pattern> {
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

    fn cast(&mut self, cast: &syn::ExprCast) -> Checked<Expr> {
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

    pub(super) fn annotation_needed(&self, span: Span) -> Box<Diagnostic> {
        Diagnostic::check("E0282", span, "type annotations needed").label("cannot infer type")
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
