//! Names and paths, and the nearest spelling of unknown ones.

use super::{Checked, Checker, Entity};
use crate::diagnostic::Diagnostic;
use crate::hir::{Expr, Kind};
use crate::ir::Span;
use crate::library;
use crate::place::span_of;
use crate::ty::Ty;
use crate::value::Value;

impl Checker<'_> {
    pub(super) fn path(&mut self, path: &syn::ExprPath, expected: Option<&Ty>) -> Checked<Expr> {
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
        if let [owner, name] = segments.as_slice() {
            self.refuse_lone_self(owner, span)?;
            if let Some(def) = self.struct_named(owner) {
                return self.associated_value(&def, name, span);
            }
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
    pub(super) fn none_of(
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

    pub(super) fn name(&mut self, name: &str, span: Span, expected: Option<&Ty>) -> Checked<Expr> {
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
            Some(Entity::Constructor(def)) => self.struct_value(def, span),
            None if name == "self" => {
                Err(Diagnostic::check("E0424", span, "expected value, found module `self`").label(
                    "`self` value is a keyword only available in methods with a `self` parameter",
                ))
            }
            None if name == "Self" => match self.self_ty.clone() {
                Some(def) => self.struct_value(def, span),
                None => Err(Diagnostic::check("E0411", span, "cannot find `Self` in this scope")),
            },
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

    pub(super) fn prelude_name(&mut self, name: &str, span: Span) -> Checked<Expr> {
        if let Some(item) = library::surface_constant(name) {
            let ty = library::constant_type(item);
            return Ok(Expr { kind: Kind::Constant(item), ty, span });
        }
        if library::surface_function(name).is_some() || library::function(name).is_some() {
            let signature = library::surface_function(name).map_or("", |item| item.signature);
            let instead = match signature.starts_with(&format!("fn {name}()")) {
                true => format!("call it: `{name}()`"),
                false => format!("wrap it: `|x| {name}(x)`"),
            };
            return Err(Diagnostic::unsupported(
                span,
                format!("the function `{name}` as a value; {instead}"),
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
        if let Some(def) = self.struct_named(name) {
            return Err(self.not_a_value(&def, span, "value"));
        }
        Err(self.unknown_name(name, span, "value"))
    }

    pub(super) fn unknown_name(&self, name: &str, span: Span, what: &str) -> Box<Diagnostic> {
        let fault =
            Diagnostic::check("E0425", span, format!("cannot find {what} `{name}` in this scope"));
        let fault = match self.names.variable(name) {
            Some(known) if crate::structs::names_any(&known.ty, &self.replaced) => fault.note(
                format!("`{name}` goes with the struct in its type, which is defined anew here"),
            ),
            _ => fault,
        };
        match self.nearest(name) {
            Some((near, kind)) => {
                fault.label(format!("help: a {kind} with a similar name exists: `{near}`"))
            }
            None => fault.label("not found in this scope"),
        }
    }

    pub(super) fn nearest(&self, name: &str) -> Option<(String, &'static str)> {
        let mut candidates: Vec<(String, &'static str)> = Vec::new();
        for scope in &self.scopes {
            for (name, entity) in &scope.names {
                let kind = match entity {
                    Entity::Local(_) => "local variable",
                    Entity::Function(_) => "function",
                    Entity::Constant(..) => "constant",
                    Entity::Constructor(_) => "struct",
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
}
