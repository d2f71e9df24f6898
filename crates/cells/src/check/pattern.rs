//! Patterns, with Rust's default binding modes.

use super::{Checked, Checker, Entity, syntax};
use crate::diagnostic::Diagnostic;
use crate::hir::{Binding, Kind, Pattern, PatternKind};
use crate::ir::Span;
use crate::library;
use crate::place::{between, span_of};
use crate::structs::Form;
use crate::ty::{Ty, VarKind};
use crate::value::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Names bound by one pattern so far: (local, its binding), for or-patterns and repetitions.
pub(super) type Bound = HashMap<String, u32>;

impl Checker<'_> {
    /// A pattern that binds names in the current scope.
    pub(super) fn binding_pattern(&mut self, pattern: &syn::Pat, ty: &Ty) -> Checked<Pattern> {
        let mut bound = Bound::new();
        let checked = self.pattern(pattern, ty, Binding::Value, &mut bound, false)?;
        for (name, local) in bound {
            self.declare(&name, Entity::Local(local));
        }
        Ok(checked)
    }

    pub(super) fn pattern(
        &mut self,
        pattern: &syn::Pat,
        ty: &Ty,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
    ) -> Checked<Pattern> {
        let span = pattern_span(pattern);
        let shallow = self.infer.shallow(ty);
        // A pattern that is no reference, name or `_` looks through references.
        if let Ty::Ref(mutable, to) = &shallow
            && self.looks_through(pattern)
        {
            let mode = match (mode, mutable) {
                (Binding::Ref, _) | (_, false) => Binding::Ref,
                _ => Binding::Mut,
            };
            let inner = self.pattern(pattern, to, mode, bound, again)?;
            return Ok(Pattern { kind: PatternKind::Deref(Box::new(inner)), ty: shallow, span });
        }
        let kind = match pattern {
            syn::Pat::Wild(_) => PatternKind::Wild,
            syn::Pat::Paren(inner) => return self.pattern(&inner.pat, ty, mode, bound, again),
            syn::Pat::Ident(ident) => self.identifier(ident, ty, mode, bound, again, span)?,
            syn::Pat::Lit(literal) => self.literal_pattern(&literal.lit, ty, false, span)?,
            syn::Pat::Range(range) => self.range_pattern(range, ty, span)?,
            syn::Pat::Tuple(tuple) => {
                let elements: Vec<&syn::Pat> = tuple.elems.iter().collect();
                self.tuple_pattern(&elements, ty, mode, bound, again, span)?
            }
            syn::Pat::Slice(slice) => {
                let elements: Vec<&syn::Pat> = slice.elems.iter().collect();
                self.slice_pattern(&elements, ty, mode, bound, again, span)?
            }
            syn::Pat::Reference(reference) => {
                let inner = self.infer.fresh();
                let mutable = reference.mutability.is_some();
                let want = Ty::Ref(mutable, Arc::new(inner.clone()));
                self.equate(ty, &want, span)?;
                let pattern = self.pattern(&reference.pat, &inner, Binding::Value, bound, again)?;
                PatternKind::Deref(Box::new(pattern))
            }
            syn::Pat::Or(or) => self.or_pattern(or, ty, mode, bound, again)?,
            syn::Pat::TupleStruct(tuple) => {
                let own = tuple.path.get_ident().map(ToString::to_string);
                match own.and_then(|name| self.struct_named(&name)) {
                    Some(def) => {
                        self.constructs(&def, tuple, ty)?;
                        self.constructor_pattern(&def, tuple, mode, bound, again)?
                    }
                    None => self.some_pattern(tuple, ty, mode, bound, again, span)?,
                }
            }
            syn::Pat::Struct(pattern) => {
                self.struct_pattern(pattern, ty, mode, bound, again, span)?
            }
            syn::Pat::Path(path) => self.path_pattern(path, ty, span)?,
            syn::Pat::Type(typed) => {
                let annotated = self.user_type(&typed.ty)?;
                self.equate(ty, &annotated, span)?;
                return self.pattern(&typed.pat, ty, mode, bound, again);
            }
            syn::Pat::Rest(_) => {
                return Err(Diagnostic::parse(span, "`..` patterns are not allowed here"));
            }
            _ => return Err(Diagnostic::unsupported(span, "this pattern")),
        };
        Ok(Pattern { kind, ty: ty.clone(), span })
    }

    fn looks_through(&self, pattern: &syn::Pat) -> bool {
        match pattern {
            syn::Pat::Wild(_) | syn::Pat::Reference(_) | syn::Pat::Or(_) => false,
            syn::Pat::Type(_) | syn::Pat::Rest(_) => false,
            syn::Pat::Paren(inner) => self.looks_through(&inner.pat),
            syn::Pat::Ident(ident) => {
                ident.subpat.is_none()
                    && ident.by_ref.is_none()
                    && ident.mutability.is_none()
                    && (ident.ident == "None"
                        || self.struct_in_pattern(&ident.ident.to_string()).is_some())
            }
            syn::Pat::Lit(literal) => !matches!(literal.lit, syn::Lit::Str(_)),
            _ => true,
        }
    }

    fn identifier(
        &mut self,
        ident: &syn::PatIdent,
        ty: &Ty,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
        span: Span,
    ) -> Checked<PatternKind> {
        let name = ident.ident.to_string();
        let name_span = span_of(ident.ident.span());
        if ident.subpat.is_none() && ident.by_ref.is_none() && ident.mutability.is_none() {
            if name == "None" {
                let inner = self.infer.fresh();
                self.equate(ty, &Ty::generic("Option", inner), span)?;
                return Ok(PatternKind::None);
            }
            if let Some(def) = self.struct_in_pattern(&name) {
                if def.form == Form::Tuple {
                    let words = format!("let bindings cannot shadow tuple structs: `{name}`");
                    return Err(Diagnostic::check("E0530", span, words)
                        .label("cannot be named the same as a tuple struct"));
                }
                self.equate(ty, &Ty::Struct(def), span)?;
                return Ok(PatternKind::Tuple(Vec::new()));
            }
            if let Some(Entity::Constant(constant, value)) = self.constant_named(&name) {
                self.equate(ty, &constant, span)?;
                return Ok(PatternKind::Literal(value));
            }
        }
        let by = match &ident.by_ref {
            Some(_) if ident.mutability.is_some() => Binding::Mut,
            Some(_) => Binding::Ref,
            None => mode,
        };
        if library::surface_constant(&name).is_some() && by == Binding::Value {
            return Err(Diagnostic::unsupported(
                name_span,
                format!("`{name}` as a pattern: it is a constant of the prelude"),
            ));
        }
        let own = match by {
            Binding::Value => ty.clone(),
            Binding::Ref => Ty::reference(ty.clone()),
            Binding::Mut => Ty::Ref(true, Arc::new(ty.clone())),
        };
        let mutable = ident.mutability.is_some() && ident.by_ref.is_none();
        let local = match bound.get(&name) {
            Some(local) if again => {
                let known = self.locals[*local as usize].ty.clone();
                self.equate(&known, &own, name_span)?;
                *local
            }
            Some(_) => {
                return Err(Diagnostic::check(
                    "E0416",
                    name_span,
                    format!("identifier `{name}` is bound more than once in the same pattern"),
                )
                .label("used in a pattern more than once"));
            }
            None => self.new_local(&name, own, mutable, name_span),
        };
        bound.insert(name, local);
        let inner = match &ident.subpat {
            Some((_, inner)) => Some(Box::new(self.pattern(inner, ty, mode, bound, again)?)),
            None => None,
        };
        Ok(PatternKind::Bind { local, by, inner })
    }

    fn constant_named(&self, name: &str) -> Option<Entity> {
        for scope in self.scopes.iter().rev() {
            if let Some(entity) = scope.names.get(name) {
                return match entity {
                    Entity::Constant(..) => Some(entity.clone()),
                    _ => None,
                };
            }
        }
        self.names.constant(name).map(|(ty, value)| Entity::Constant(ty, value))
    }

    fn literal_pattern(
        &mut self,
        lit: &syn::Lit,
        ty: &Ty,
        negative: bool,
        span: Span,
    ) -> Checked<PatternKind> {
        let checked = self.literal(lit, Some(ty))?;
        self.equate(ty, &checked.ty, span)?;
        let Kind::Literal(value) = checked.kind else { unreachable!("literals are values") };
        let value = match value {
            Value::Int(value) if negative => Value::Int(-value),
            Value::Float(value) if negative => Value::Float(-value),
            value => value,
        };
        Ok(PatternKind::Literal(value))
    }

    /// A bound of a range pattern.
    fn bound_value(&mut self, expr: &syn::Expr, ty: &Ty) -> Checked<Value> {
        let span = syntax::span(expr);
        match expr {
            syn::Expr::Lit(literal) => match self.literal_pattern(&literal.lit, ty, false, span)? {
                PatternKind::Literal(value) => Ok(value),
                _ => unreachable!("literals are values"),
            },
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
                let syn::Expr::Lit(literal) = &*unary.expr else {
                    return Err(Diagnostic::unsupported(span, "this bound of a pattern"));
                };
                match self.literal_pattern(&literal.lit, ty, true, span)? {
                    PatternKind::Literal(value) => Ok(value),
                    _ => unreachable!("literals are values"),
                }
            }
            syn::Expr::Path(path) => {
                let segments: Vec<String> =
                    path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                if let Some((own, value)) = library::associated_constant(&segments) {
                    self.equate(ty, &own, span)?;
                    return Ok(value);
                }
                if let [name] = segments.as_slice()
                    && let Some(Entity::Constant(own, value)) = self.constant_named(name)
                {
                    self.equate(ty, &own, span)?;
                    return Ok(value);
                }
                Err(Diagnostic::unsupported(span, "this bound of a pattern"))
            }
            _ => Err(Diagnostic::unsupported(span, "this bound of a pattern")),
        }
    }

    fn range_pattern(
        &mut self,
        range: &syn::ExprRange,
        ty: &Ty,
        span: Span,
    ) -> Checked<PatternKind> {
        let low = match &range.start {
            Some(start) => Some(self.bound_value(start, ty)?),
            None => None,
        };
        let high = match &range.end {
            Some(end) => Some(self.bound_value(end, ty)?),
            None => None,
        };
        let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
        if let (Some(Value::Int(low)), Some(Value::Int(high))) = (&low, &high)
            && (low > high || (low == high && !inclusive))
        {
            let code = if inclusive { "E0030" } else { "E0579" };
            return Err(Diagnostic::check(
                code,
                span,
                "lower bound for range pattern must be less than its upper bound",
            ));
        }
        Ok(PatternKind::Range { low, high, inclusive })
    }

    fn tuple_pattern(
        &mut self,
        elements: &[&syn::Pat],
        ty: &Ty,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
        span: Span,
    ) -> Checked<PatternKind> {
        let rest = elements.iter().position(|element| matches!(element, syn::Pat::Rest(_)));
        let shallow = self.infer.shallow(ty);
        let types: Vec<Ty> = match (&shallow, rest) {
            (Ty::Tuple(parts), _) => parts.to_vec(),
            (_, Some(_)) if self.infer.var_kind(&shallow).is_some() => {
                return Err(self.annotation_needed(span));
            }
            _ => {
                let own: Vec<Ty> = elements.iter().map(|_| self.infer.fresh()).collect();
                self.equate(ty, &Ty::Tuple(own.clone().into()), span)?;
                own
            }
        };
        let given = elements.len() - usize::from(rest.is_some());
        if (rest.is_none() && given != types.len()) || given > types.len() {
            let own: Vec<Ty> = elements.iter().map(|_| self.infer.fresh()).collect();
            return Err(self.mismatch(ty, &Ty::Tuple(own.into()), span));
        }
        let mut parts = Vec::with_capacity(types.len());
        let head = rest.unwrap_or(elements.len());
        for (element, ty) in elements[..head].iter().zip(&types) {
            parts.push(self.pattern(element, ty, mode, bound, again)?);
        }
        if let Some(rest) = rest {
            let tail = &elements[rest + 1..];
            let start = types.len() - tail.len();
            for ty in &types[head..start] {
                parts.push(Pattern { kind: PatternKind::Wild, ty: ty.clone(), span });
            }
            for (element, ty) in tail.iter().zip(&types[start..]) {
                parts.push(self.pattern(element, ty, mode, bound, again)?);
            }
        }
        Ok(PatternKind::Tuple(parts))
    }

    fn slice_pattern(
        &mut self,
        elements: &[&syn::Pat],
        ty: &Ty,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
        span: Span,
    ) -> Checked<PatternKind> {
        let is_rest = |element: &syn::Pat| match element {
            syn::Pat::Rest(_) => true,
            syn::Pat::Ident(ident) => {
                matches!(&ident.subpat, Some((_, inner)) if matches!(**inner, syn::Pat::Rest(_)))
            }
            _ => false,
        };
        let rest = elements.iter().position(|element| is_rest(element));
        let given = elements.len() - usize::from(rest.is_some());
        let shallow = self.infer.shallow(ty);
        let (element, length) = match &shallow {
            Ty::Array(element, length) => ((**element).clone(), Some(self.infer.shallow(length))),
            Ty::Slice(element) => ((**element).clone(), None),
            Ty::Var(_) if self.infer.var_kind(&shallow) == Some(VarKind::General) => {
                if rest.is_some() {
                    return Err(self.annotation_needed(span));
                }
                let element = self.infer.fresh();
                let length = Ty::Const(given as u64);
                let own = Ty::Array(Arc::new(element.clone()), Arc::new(length.clone()));
                self.equate(ty, &own, span)?;
                (element, Some(length))
            }
            _ => {
                return Err(Diagnostic::check(
                    "E0529",
                    span,
                    format!("expected an array or slice, found `{}`", self.infer.text(&shallow)),
                )
                .label(format!(
                    "pattern cannot match with input type `{}`",
                    self.infer.text(&shallow)
                )));
            }
        };
        let mut known = None;
        match length {
            Some(Ty::Const(length)) => {
                let length = length as usize;
                if rest.is_none() && given != length {
                    return Err(Diagnostic::check(
                        "E0527",
                        span,
                        format!("pattern requires {given} elements but array has {length}"),
                    )
                    .label(format!("expected {length} elements")));
                }
                if given > length {
                    return Err(Diagnostic::check(
                        "E0528",
                        span,
                        format!(
                            "pattern requires at least {given} elements but array has {length}"
                        ),
                    ));
                }
                known = Some(length);
            }
            Some(var) if rest.is_none() => {
                self.equate(&var, &Ty::Const(given as u64), span)?;
                known = Some(given);
            }
            Some(_) => {
                return Err(Diagnostic::check(
                    "E0730",
                    span,
                    "cannot pattern-match on an array without a fixed length",
                )
                .help("say the length: `|[x, ws @ ..]: [&Array; 3]|`"));
            }
            None => {}
        }
        let head = rest.unwrap_or(elements.len());
        let mut before = Vec::new();
        for part in &elements[..head] {
            before.push(self.pattern(part, &element, mode, bound, again)?);
        }
        let mut after = Vec::new();
        let mut middle = None;
        if let Some(rest) = rest {
            let named = match elements[rest] {
                syn::Pat::Ident(ident) => Some(ident),
                _ => None,
            };
            let own = match known {
                Some(length) => Ty::array_of(element.clone(), (length - given) as u64),
                None => Ty::Slice(Arc::new(element.clone())),
            };
            middle = Some(match named {
                Some(ident) => {
                    let bare = syn::PatIdent { subpat: None, ..ident.clone() };
                    let span = span_of(ident.ident.span());
                    let kind = self.identifier(&bare, &own, mode, bound, again, span)?;
                    Some(Box::new(Pattern { kind, ty: own, span }))
                }
                None => None,
            });
            for part in &elements[rest + 1..] {
                after.push(self.pattern(part, &element, mode, bound, again)?);
            }
        }
        Ok(PatternKind::Slice { before, rest: middle, after })
    }

    fn or_pattern(
        &mut self,
        or: &syn::PatOr,
        ty: &Ty,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
    ) -> Checked<PatternKind> {
        let outer = bound.clone();
        let mut cases = Vec::new();
        let mut names: Option<Bound> = None;
        for case in &or.cases {
            let mut own = match &names {
                Some(names) => names.clone(),
                None => outer.clone(),
            };
            let before: Vec<String> = own.keys().cloned().collect();
            let checked = self.pattern(case, ty, mode, &mut own, again || names.is_some())?;
            if names.is_some() {
                let extra = own.keys().find(|name| !before.contains(name));
                let bound_here = bound_names(&checked, &self.locals);
                let missing = before
                    .iter()
                    .find(|name| !outer.contains_key(*name) && !bound_here.contains(name));
                if let Some(name) = extra.or(missing) {
                    return Err(Diagnostic::check(
                        "E0408",
                        pattern_span(case),
                        format!("variable `{name}` is not bound in all patterns"),
                    )
                    .label(format!("pattern doesn't bind `{name}`")));
                }
            } else {
                names = Some(own);
            }
            cases.push(checked);
        }
        if let Some(names) = names {
            *bound = names;
        }
        Ok(PatternKind::Or(cases))
    }

    fn some_pattern(
        &mut self,
        tuple: &syn::PatTupleStruct,
        ty: &Ty,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
        span: Span,
    ) -> Checked<PatternKind> {
        if !tuple.path.is_ident("Some") {
            let name = tuple
                .path
                .segments
                .last()
                .map(|segment| segment.ident.to_string())
                .unwrap_or_default();
            if let ("Ok" | "Err", [only]) =
                (name.as_str(), &tuple.elems.iter().collect::<Vec<_>>()[..])
            {
                let (value, error) = (self.infer.fresh(), self.infer.fresh());
                let own = Ty::Named("Result", [value.clone(), error.clone()].into());
                self.equate(ty, &own, span)?;
                let ok = name == "Ok";
                let inner = self.infer.shallow(if ok { &value } else { &error });
                let inner = self.pattern(only, &inner, mode, bound, again)?;
                return Ok(PatternKind::Outcome(ok, Box::new(inner)));
            }
            return Err(Diagnostic::check(
                "E0531",
                span,
                format!("cannot find tuple struct or tuple variant `{name}` in this scope"),
            )
            .label("not found in this scope"));
        }
        let [only] = tuple.elems.iter().collect::<Vec<_>>()[..] else {
            return Err(Diagnostic::check(
                "E0023",
                span,
                format!(
                    "this pattern has {} fields, but the corresponding tuple variant has 1 field",
                    tuple.elems.len()
                ),
            ));
        };
        let inner = self.infer.fresh();
        self.equate(ty, &Ty::generic("Option", inner.clone()), span)?;
        let inner = self.infer.shallow(&inner);
        Ok(PatternKind::Some(Box::new(self.pattern(only, &inner, mode, bound, again)?)))
    }

    fn path_pattern(&mut self, path: &syn::PatPath, ty: &Ty, span: Span) -> Checked<PatternKind> {
        let segments: Vec<String> =
            path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match library::associated_constant(&segments) {
            Some((own, value)) => {
                self.equate(ty, &own, span)?;
                Ok(PatternKind::Literal(value))
            }
            None => Err(self.unknown_path(&segments, span)),
        }
    }
}

fn bound_names(pattern: &Pattern, locals: &[crate::hir::Local]) -> Vec<String> {
    let mut out = Vec::new();
    collect_names(pattern, locals, &mut out);
    out
}

fn collect_names(pattern: &Pattern, locals: &[crate::hir::Local], out: &mut Vec<String>) {
    match &pattern.kind {
        PatternKind::Bind { local, inner, .. } => {
            out.push(locals[*local as usize].name.clone());
            if let Some(inner) = inner {
                collect_names(inner, locals, out);
            }
        }
        PatternKind::Tuple(parts) | PatternKind::Or(parts) => {
            parts.iter().for_each(|part| collect_names(part, locals, out));
        }
        PatternKind::Slice { before, rest, after } => {
            before.iter().chain(after).for_each(|part| collect_names(part, locals, out));
            if let Some(Some(rest)) = rest {
                collect_names(rest, locals, out);
            }
        }
        PatternKind::Some(inner) | PatternKind::Outcome(_, inner) | PatternKind::Deref(inner) => {
            collect_names(inner, locals, out);
        }
        _ => {}
    }
}

fn pattern_span(pattern: &syn::Pat) -> Span {
    match pattern {
        syn::Pat::Ident(ident) if ident.subpat.is_none() => {
            let name = span_of(ident.ident.span());
            match (&ident.by_ref, &ident.mutability) {
                (Some(token), _) => between(span_of(token.span), name),
                (None, Some(token)) => between(span_of(token.span), name),
                _ => name,
            }
        }
        syn::Pat::Tuple(tuple) => syntax::delimited(&tuple.paren_token.span),
        syn::Pat::Slice(slice) => syntax::delimited(&slice.bracket_token.span),
        other => span_of(syn::spanned::Spanned::span(other)),
    }
}
