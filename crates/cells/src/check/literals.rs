//! Values of structs: literals with their base, constructors, and patterns that take them apart.

use super::call::{Arguments, Site};
use super::pattern::Bound;
use super::{Checked, Checker, Entity};
use crate::diagnostic::Diagnostic;
use crate::hir::{Binding, Expr, Kind, Pattern, PatternKind};
use crate::ir::Span;
use crate::place::{between, span_of};
use crate::structs::{Form, StructDef};
use crate::ty::Ty;
use std::sync::Arc;
use syn::spanned::Spanned;

impl Checker<'_> {
    /// `Point { x: 1.0, ..base }`.
    pub(super) fn struct_literal(&mut self, literal: &syn::ExprStruct) -> Checked<Expr> {
        let unknown = ("E0422", "struct, variant or union type");
        let def = self.struct_path(&literal.path, unknown)?;
        let start = span_of(literal.path.span());
        let span = between(start, span_of(literal.brace_token.span.close()));
        let mut fields: Vec<(u32, Expr)> = Vec::new();
        for field in &literal.fields {
            let (at, name) = self.field_of(&def, &field.member)?;
            if fields.iter().any(|(own, _)| *own == at) {
                return Err(Diagnostic::check(
                    "E0062",
                    span_of(field.member.span()),
                    format!("field `{name}` specified more than once"),
                )
                .label("used more than once"));
            }
            let ty = def.fields()[at as usize].clone();
            fields.push((at, self.expr_of(&field.expr, &ty)?));
        }
        let mut base = None;
        if let Some(dots) = &literal.dot2_token {
            let Some(rest) = &literal.rest else {
                let at = span_of(dots.spans[0]);
                return Err(Diagnostic::check("E0797", at, "base expression required after `..`")
                    .label("add a base expression here"));
            };
            base = Some(Box::new(self.expr_of(rest, &Ty::Struct(def.clone()))?));
        } else {
            self.all_given(&def, &fields, start)?;
        }
        Ok(Expr { ty: Ty::Struct(def.clone()), kind: Kind::Struct { def, fields, base }, span })
    }

    fn all_given(&self, def: &StructDef, fields: &[(u32, Expr)], span: Span) -> Checked<()> {
        let is_given = |at: usize| fields.iter().any(|(own, _)| *own as usize == at);
        let missing: Vec<String> = (0..def.names.fields.len())
            .filter(|at| !is_given(*at))
            .map(|at| format!("`{}`", def.names.fields[at]))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let plural = if missing.len() == 1 { "" } else { "s" };
        let list = missing.join(", ");
        Err(Diagnostic::check(
            "E0063",
            span,
            format!("missing field{plural} {list} in initializer of `{}`", def.name()),
        )
        .label(format!("missing {list}")))
    }

    /// Where the field stands, and its name.
    fn field_of(&self, def: &StructDef, member: &syn::Member) -> Checked<(u32, String)> {
        let name = member_name(member);
        if let Some(at) = def.position(&name) {
            return Ok((at as u32, name));
        }
        let own = def.name();
        let fault = Diagnostic::check(
            "E0560",
            span_of(member.span()),
            format!("struct `{own}` has no field named `{name}`"),
        );
        let known = def.names.fields.iter().map(|field| &**field);
        Err(match crate::library::nearest(&name, known) {
            Some(near) => fault
                .label("unknown field")
                .help(format!("a field with a similar name exists: `{near}`")),
            None => fault.label(format!("`{own}` does not have this field")),
        })
    }

    /// A tuple struct's constructor that is called.
    pub(super) fn construct(
        &mut self,
        def: Arc<StructDef>,
        arguments: Arguments<'_>,
        site: Site,
    ) -> Checked<Expr> {
        if def.form == Form::Unit {
            return Err(self.not_callable(&Ty::Struct(def), site.whole));
        }
        let args = self.plain_arguments(def.fields(), arguments, site)?;
        let fields = args.into_iter().enumerate().map(|(at, arg)| (at as u32, arg)).collect();
        let ty = Ty::Struct(def.clone());
        Ok(Expr { kind: Kind::Struct { def, fields, base: None }, ty, span: site.whole })
    }

    /// A struct's name as a value.
    pub(super) fn struct_value(&mut self, def: Arc<StructDef>, span: Span) -> Checked<Expr> {
        match def.form {
            Form::Unit => {
                let ty = Ty::Struct(def.clone());
                Ok(Expr { kind: Kind::Struct { def, fields: Vec::new(), base: None }, ty, span })
            }
            Form::Tuple => {
                let cell = def.constructor();
                let ty = Ty::FnItem(cell.id, cell.sig.clone());
                Ok(Expr { kind: Kind::Function(cell), ty, span })
            }
            Form::Named => Err(self.not_a_value(&def, span, "value")),
        }
    }

    pub(super) fn not_a_value(&self, def: &StructDef, span: Span, want: &str) -> Box<Diagnostic> {
        let name = def.name();
        let fields: Vec<String> =
            def.names.fields.iter().map(|field| format!("{field}: …")).collect();
        Diagnostic::check("E0423", span, format!("expected {want}, found struct `{name}`"))
            .help(format!("write `{name} {{ {} }}`", fields.join(", ")))
    }

    /// `Point { x, y: 0.0, .. }` as a pattern.
    pub(super) fn struct_pattern(
        &mut self,
        pattern: &syn::PatStruct,
        ty: &Ty,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
        span: Span,
    ) -> Checked<PatternKind> {
        let unknown = ("E0422", "struct, variant or union type");
        let def = self.struct_path(&pattern.path, unknown)?;
        self.equate(ty, &Ty::Struct(def.clone()), span)?;
        let mut parts: Vec<Option<Pattern>> = def.fields().iter().map(|_| None).collect();
        for field in &pattern.fields {
            let name = member_name(&field.member);
            let at = span_of(field.member.span());
            let Some(index) = def.position(&name) else {
                let code = if def.form == Form::Tuple { "E0769" } else { "E0026" };
                return Err(Diagnostic::check(
                    code,
                    at,
                    format!("struct `{}` does not have a field named `{name}`", def.name()),
                )
                .label(format!("struct `{}` does not have this field", def.name())));
            };
            if parts[index].is_some() {
                return Err(Diagnostic::check(
                    "E0025",
                    at,
                    format!("field `{name}` bound multiple times in the pattern"),
                )
                .label(format!("multiple uses of `{name}` in pattern")));
            }
            let field_ty = def.fields()[index].clone();
            parts[index] = Some(self.pattern(&field.pat, &field_ty, mode, bound, again)?);
        }
        if pattern.rest.is_none() && parts.iter().any(Option::is_none) {
            let missing = parts.iter().zip(&def.names.fields).filter(|(part, _)| part.is_none());
            let missing: Vec<String> = missing.map(|(_, name)| format!("`{name}`")).collect();
            let list = missing.join(", ");
            return Err(Diagnostic::check(
                "E0027",
                span,
                format!("pattern does not mention field(s) {list}"),
            )
            .label(format!("missing {list}"))
            .help("ignore the others with `..`"));
        }
        Ok(self.whole_pattern(&def, parts, span))
    }

    /// Whether `Pair(a, ..)` may be a pattern of values of type `ty`.
    pub(super) fn constructs(
        &mut self,
        def: &Arc<StructDef>,
        tuple: &syn::PatTupleStruct,
        ty: &Ty,
    ) -> Checked<()> {
        if def.form != Form::Tuple {
            let what = if def.form == Form::Unit { "unit struct" } else { "struct" };
            return Err(Diagnostic::check(
                "E0532",
                span_of(tuple.path.span()),
                format!("expected tuple struct or tuple variant, found {what} `{}`", def.name()),
            )
            .label("not a tuple struct"));
        }
        self.equate(ty, &Ty::Struct(def.clone()), span_of(tuple.span()))?;
        Ok(())
    }

    /// `Pair(a, ..)` as a pattern.
    pub(super) fn constructor_pattern(
        &mut self,
        def: &Arc<StructDef>,
        tuple: &syn::PatTupleStruct,
        mode: Binding,
        bound: &mut Bound,
        again: bool,
    ) -> Checked<PatternKind> {
        let span = span_of(tuple.span());
        let elements: Vec<&syn::Pat> = tuple.elems.iter().collect();
        let rest = elements.iter().position(|element| matches!(element, syn::Pat::Rest(_)));
        let given = elements.len() - usize::from(rest.is_some());
        let count = def.fields().len();
        if given > count || (rest.is_none() && given != count) {
            let plural = |count: usize| if count == 1 { "field" } else { "fields" };
            return Err(Diagnostic::check(
                "E0023",
                span,
                format!(
                    "this pattern has {given} {}, but the corresponding tuple struct has {count} {}",
                    plural(given),
                    plural(count)
                ),
            )
            .label(format!("expected {count} {}, found {given}", plural(count))));
        }
        let head = rest.unwrap_or(elements.len());
        let tail = elements.len().saturating_sub(head + 1);
        let mut parts: Vec<Option<Pattern>> = (0..count).map(|_| None).collect();
        for (at, element) in elements.iter().enumerate() {
            if rest == Some(at) {
                continue;
            }
            let index = if at < head { at } else { count - tail + (at - head - 1) };
            let field = def.fields()[index].clone();
            parts[index] = Some(self.pattern(element, &field, mode, bound, again)?);
        }
        Ok(self.whole_pattern(def, parts, span))
    }

    /// Fields that are not named match anything.
    fn whole_pattern(
        &self,
        def: &StructDef,
        parts: Vec<Option<Pattern>>,
        span: Span,
    ) -> PatternKind {
        let wild = |ty: &Ty| Pattern { kind: PatternKind::Wild, ty: ty.clone(), span };
        let parts = parts.into_iter().zip(def.fields());
        PatternKind::Tuple(parts.map(|(part, ty)| part.unwrap_or_else(|| wild(ty))).collect())
    }

    /// A name in a pattern that is a struct's: a unit struct matches, a tuple struct's constructor
    /// cannot stand there.
    pub(super) fn struct_in_pattern(&self, name: &str) -> Option<Arc<StructDef>> {
        if name == "Self" {
            return self.self_ty.clone();
        }
        for scope in self.scopes.iter().rev() {
            if let Some(entity) = scope.names.get(name) {
                return match entity {
                    Entity::Constructor(def) => Some(def.clone()),
                    _ => None,
                };
            }
        }
        self.struct_named(name).filter(|def| def.form != Form::Named)
    }

    /// The left side of `Point { x, y } = …` and `Pair(a, b) = …`.
    pub(super) fn assign_struct(
        &mut self,
        expr: &syn::Expr,
        span: Span,
    ) -> Checked<Option<Pattern>> {
        let (def, parts) = match expr {
            syn::Expr::Struct(literal) => {
                let unknown = ("E0422", "struct, variant or union type");
                let def = self.struct_path(&literal.path, unknown)?;
                let mut parts: Vec<Option<Pattern>> = def.fields().iter().map(|_| None).collect();
                for field in &literal.fields {
                    let (at, _) = self.field_of(&def, &field.member)?;
                    parts[at as usize] = Some(self.assign_pattern(&field.expr)?);
                }
                if literal.dot2_token.is_none() && parts.iter().any(Option::is_none) {
                    return Err(Diagnostic::check(
                        "E0027",
                        span,
                        "pattern does not mention all fields",
                    )
                    .help("ignore the others with `..`"));
                }
                (def, parts)
            }
            syn::Expr::Call(call) => {
                let syn::Expr::Path(path) = &*call.func else { return Ok(None) };
                let Some(name) = path.path.get_ident() else { return Ok(None) };
                let Some(def) = self.struct_in_pattern(&name.to_string()) else { return Ok(None) };
                if call.args.len() != def.fields().len() {
                    let words = "this pattern has another number of fields than the struct";
                    return Err(Diagnostic::check("E0023", span, words));
                }
                let mut parts = Vec::new();
                for arg in &call.args {
                    parts.push(Some(self.assign_pattern(arg)?));
                }
                (def, parts)
            }
            _ => return Ok(None),
        };
        for (part, ty) in parts.iter().zip(def.fields()) {
            if let Some(part) = part {
                self.equate(ty, &part.ty.clone(), part.span)?;
            }
        }
        let ty = Ty::Struct(def.clone());
        Ok(Some(Pattern { kind: self.whole_pattern(&def, parts, span), ty, span }))
    }
}

fn member_name(member: &syn::Member) -> String {
    match member {
        syn::Member::Named(name) => name.to_string(),
        syn::Member::Unnamed(index) => index.index.to_string(),
    }
}
