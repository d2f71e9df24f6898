//! `struct` items: their fields, what they derive, and what a new definition does to an older one.

use super::expr::unique;
use super::{Checked, Checker, Entity};
use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use crate::place::{between, span_of};
use crate::structs::{Derives, Form, StructDef, names_any};
use crate::ty::Ty;
use std::borrow::Cow;
use std::sync::Arc;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use vramlab_array::StructNames;

/// A `struct` item of a block, and whether `tree!` stands around it.
pub(super) struct StructItem<'s> {
    item: Cow<'s, syn::ItemStruct>,
    is_tree: bool,
}

impl StructItem<'_> {
    pub(super) fn name(&self) -> String {
        self.item.ident.to_string()
    }
}

/// The structs of a block.
///
/// # Errors
/// What stands in `tree!` is not a list of structs.
pub(super) fn struct_items(statements: &[syn::Stmt]) -> Checked<Vec<StructItem<'_>>> {
    let mut out = Vec::new();
    for statement in statements {
        match statement {
            syn::Stmt::Item(syn::Item::Struct(item)) => {
                out.push(StructItem { item: Cow::Borrowed(item), is_tree: false });
            }
            syn::Stmt::Macro(call) if is_tree(&call.mac) => {
                let items = tree_items.parse2(call.mac.tokens.clone());
                let items = items.map_err(|error| super::parse_fault(&error))?;
                let own = |item| StructItem { item: Cow::Owned(item), is_tree: true };
                out.extend(items.into_iter().map(own));
            }
            _ => {}
        }
    }
    Ok(out)
}

pub(super) fn is_tree(mac: &syn::Macro) -> bool {
    mac.path.is_ident("tree")
}

fn tree_items(input: ParseStream<'_>) -> syn::Result<Vec<syn::ItemStruct>> {
    let mut items = Vec::new();
    while !input.is_empty() {
        items.push(input.parse()?);
    }
    Ok(items)
}

impl Checker<'_> {
    /// The structs of a block become known by name; their fields have no types yet.
    pub(super) fn declare_shells(&mut self, items: &[StructItem<'_>]) -> Checked<()> {
        for StructItem { item, is_tree } in items {
            let name = item.ident.to_string();
            let span = span_of(item.ident.span());
            if !item.generics.params.is_empty() || item.generics.where_clause.is_some() {
                return Err(Diagnostic::unsupported(span, "generic structs"));
            }
            if crate::signature::builtin_type(&name).is_some()
                || crate::library::is_known_type(&name)
            {
                let words = format!("a struct under the name of the type `{name}`");
                return Err(Diagnostic::unsupported(span, words));
            }
            if self.own_scope().types.contains_key(&name) {
                return Err(Diagnostic::check(
                    "E0428",
                    span,
                    format!("the name `{name}` is defined multiple times"),
                )
                .label(format!("`{name}` redefined here"))
                .note(format!("`{name}` must be defined only once in the type namespace")));
            }
            let (form, fields) = field_names(&item.fields)?;
            let start = span_of(item.struct_token.span);
            let end = match &item.fields {
                syn::Fields::Named(fields) => span_of(fields.brace_token.span.close()),
                syn::Fields::Unnamed(fields) => span_of(fields.paren_token.span.close()),
                syn::Fields::Unit => span,
            };
            let source = self.text(between(start, end));
            let names = StructNames { name: name.clone().into(), fields };
            let derives = derives(&item.attrs)?;
            let def = StructDef::new(unique(), form, derives, *is_tree, names, source);
            self.declare_struct(Arc::new(def));
        }
        Ok(())
    }

    pub(super) fn own_scope(&mut self) -> &mut super::Scope {
        self.scopes.last_mut().expect("the outermost scope is never popped")
    }

    fn declare_struct(&mut self, def: Arc<StructDef>) {
        let name = def.name().to_string();
        let form = def.form;
        self.own_scope().types.insert(name.clone(), def.clone());
        if form != Form::Named {
            self.declare(&name, Entity::Constructor(def));
        }
    }

    /// The types of the fields, and what follows from them.
    pub(super) fn declare_fields(&mut self, items: &[StructItem<'_>]) -> Checked<()> {
        self.read_fields(items, |_| true)?;
        for StructItem { item, .. } in items {
            let def = self.own_struct(&item.ident.to_string());
            self.refuse_cycle(&def, span_of(item.ident.span()))?;
        }
        if self.scopes.len() == 1 {
            self.settle_definitions(items)?;
        }
        for StructItem { item, .. } in items {
            let def = self.own_struct(&item.ident.to_string());
            self.check_derives(&def, item)?;
            if self.scopes.len() == 1 {
                self.structs.push(def);
            }
        }
        Ok(())
    }

    fn own_struct(&mut self, name: &str) -> Arc<StructDef> {
        self.own_scope().types.get(name).expect("declared as a shell").clone()
    }

    fn read_fields(
        &mut self,
        items: &[StructItem<'_>],
        wanted: impl Fn(&str) -> bool,
    ) -> Checked<()> {
        for StructItem { item, .. } in items {
            let name = item.ident.to_string();
            if !wanted(&name) {
                continue;
            }
            let mut types = Vec::new();
            for field in &item.fields {
                types.push(self.field_type(&field.ty)?);
            }
            self.own_struct(&name).set_fields(types);
        }
        Ok(())
    }

    fn field_type(&mut self, ty: &syn::Type) -> Checked<Ty> {
        let span = span_of(ty.span());
        if let Some(reference) = super::items::elided_reference(ty) {
            return Err(Diagnostic::check("E0106", reference, "missing lifetime specifier")
                .label("expected named lifetime parameter")
                .help("hold the value itself: `String` in place of `&str`, `Vec` of `&[T]`"));
        }
        if let syn::Type::ImplTrait(inner) = ty {
            let span = span_of(inner.impl_token.span);
            let words = "`impl Trait` is not allowed in field types";
            return Err(Diagnostic::check("E0562", span, words));
        }
        let read = self.item_type(ty)?;
        if holds_reference(&read) {
            return Err(Diagnostic::unsupported(span, "structs that hold references"));
        }
        if matches!(read, Ty::Str | Ty::Slice(_) | Ty::DynFn(_)) {
            return Err(Diagnostic::unsupported(span, "structs with a field of unknown size"));
        }
        Ok(read)
    }

    /// A struct in itself has no size; behind a `Vec` or a `Box` it is beyond the tier.
    fn refuse_cycle(&self, def: &Arc<StructDef>, span: Span) -> Checked<()> {
        fn find(ty: &Ty, id: u64, seen: &mut Vec<u64>, direct: bool) -> Option<bool> {
            match ty {
                Ty::Struct(own) if own.id == id => Some(direct),
                Ty::Struct(own) if seen.contains(&own.id) => None,
                Ty::Struct(own) => {
                    seen.push(own.id);
                    any(own.fields(), id, seen, direct)
                }
                Ty::Named("Option" | "Result", parts) | Ty::Tuple(parts) => {
                    any(parts, id, seen, direct)
                }
                Ty::Named(_, parts) => any(parts, id, seen, false),
                Ty::Array(element, _) => find(element, id, seen, direct),
                Ty::FnPtr(sig) | Ty::DynFn(sig) => {
                    any(&sig.params, id, seen, false).or_else(|| find(&sig.ret, id, seen, false))
                }
                Ty::Slice(to) | Ty::Ref(_, to) => find(to, id, seen, false),
                _ => None,
            }
        }
        fn any(parts: &[Ty], id: u64, seen: &mut Vec<u64>, direct: bool) -> Option<bool> {
            parts.iter().find_map(|part| find(part, id, seen, direct))
        }
        let mut seen = Vec::new();
        let found = def.fields().iter().find_map(|ty| find(ty, def.id, &mut seen, true));
        match found {
            None => Ok(()),
            Some(true) => Err(Diagnostic::check(
                "E0072",
                span,
                format!("recursive type `{}` has infinite size", def.name()),
            )),
            Some(false) => Err(Diagnostic::unsupported(span, "structs that hold themselves")),
        }
    }

    /// A struct of an earlier cell that is defined again word for word stays the same type. Any
    /// other new definition replaces it, and whatever names it goes.
    fn settle_definitions(&mut self, items: &[StructItem<'_>]) -> Checked<()> {
        let mut kept = Vec::new();
        let mut replaced = Vec::new();
        for StructItem { item, .. } in items {
            let name = item.ident.to_string();
            let Some(known) = self.names.structure(&name) else { continue };
            match known.says_the_same(&self.own_struct(&name)) {
                true => kept.push(known),
                false => replaced.push(known.id),
            }
        }
        self.replaced = replaced;
        let mut all = self.names.structures();
        all.retain(|def| !self.replaced.contains(&def.id));
        while let Some(at) = all
            .iter()
            .position(|def| def.fields().iter().any(|field| names_any(field, &self.replaced)))
        {
            let gone = all.swap_remove(at);
            kept.retain(|def: &Arc<StructDef>| def.id != gone.id);
            self.replaced.push(gone.id);
        }
        if kept.is_empty() {
            return Ok(());
        }
        let is_kept = |name: &str| kept.iter().any(|def| def.name() == name);
        for StructItem { item, .. } in items {
            let name = item.ident.to_string();
            if !is_kept(&name) {
                let shell = self.own_struct(&name).anew(unique());
                self.declare_struct(Arc::new(shell));
            }
        }
        for def in &kept {
            self.declare_struct(def.clone());
        }
        self.read_fields(items, |name| !is_kept(name))
    }

    fn check_derives(&mut self, def: &Arc<StructDef>, item: &syn::ItemStruct) -> Checked<()> {
        let span = span_of(item.ident.span());
        let derives = def.derives;
        let needs = [
            ("Copy", derives.copy, "Clone", derives.clone),
            ("Eq", derives.eq, "PartialEq", derives.partial_eq),
            ("PartialOrd", derives.partial_ord, "PartialEq", derives.partial_eq),
            ("Ord", derives.ord, "Eq", derives.eq),
            ("Ord", derives.ord, "PartialOrd", derives.partial_ord),
        ];
        for (derived, is_derived, other, is_there) in needs {
            if is_derived && !is_there {
                let name = def.name();
                return Err(Diagnostic::check(
                    "E0277",
                    span,
                    format!("the trait bound `{name}: {other}` is not satisfied"),
                )
                .label(format!("`{derived}` needs `{other}`"))
                .help(format!("derive it too: `#[derive({other}, {derived})]`")));
            }
        }
        let wanted = [
            ("Copy", derives.copy),
            ("Clone", derives.clone),
            ("Debug", derives.debug),
            ("Default", derives.default),
            ("PartialEq", derives.partial_eq),
            ("Eq", derives.eq),
            ("PartialOrd", derives.partial_ord),
            ("Ord", derives.ord),
            ("Tree", def.is_tree),
        ];
        for (name, is_wanted) in wanted {
            if !is_wanted {
                continue;
            }
            for (ty, field) in def.fields().iter().zip(&item.fields) {
                if !self.field_has(ty, name) {
                    return Err(self.not_derivable(name, def, ty, span_of(field.ty.span()), span));
                }
            }
        }
        Ok(())
    }

    fn not_derivable(
        &self,
        name: &str,
        def: &StructDef,
        field: &Ty,
        span: Span,
        whole: Span,
    ) -> Box<Diagnostic> {
        match name {
            "Copy" => Diagnostic::check(
                "E0204",
                whole,
                "the trait `Copy` cannot be implemented for this type",
            )
            .also(span, format!("`{field}` does not implement `Copy`")),
            "PartialEq" if matches!(field, Ty::FnPtr(_) | Ty::Named("Result", _)) => {
                Diagnostic::unsupported(span, format!("a comparison of `{field}`"))
            }
            "PartialEq" => Diagnostic::check(
                "E0369",
                span,
                format!("binary operation `==` cannot be applied to type `{field}`"),
            )
            .label(format!("`{}` derives `PartialEq`, and `{field}` has none", def.name())),
            "PartialOrd" => {
                Diagnostic::check("E0277", span, format!("can't compare `{field}` with `{field}`"))
                    .label(format!("no implementation for `{field} < {field}`"))
            }
            _ => Diagnostic::check(
                "E0277",
                span,
                format!("the trait bound `{field}: {name}` is not satisfied"),
            )
            .label(format!("the trait `{name}` is not implemented for `{field}`")),
        }
    }

    /// The struct that a name stands for.
    pub(super) fn struct_named(&self, name: &str) -> Option<Arc<StructDef>> {
        if name == "Self" {
            return self.self_ty.clone();
        }
        let own = self.scopes.iter().rev().find_map(|scope| scope.types.get(name));
        own.cloned().or_else(|| {
            let known = self.names.structure(name)?;
            (!self.replaced.contains(&known.id)).then_some(known)
        })
    }

    /// The struct that a path names.
    ///
    /// # Errors
    /// An unknown name, under the code of the place that asks.
    pub(super) fn struct_path(
        &mut self,
        path: &syn::Path,
        unknown: (&'static str, &str),
    ) -> Checked<Arc<StructDef>> {
        let span = span_of(path.span());
        let [segment] = path.segments.iter().collect::<Vec<_>>()[..] else {
            return Err(Diagnostic::unsupported(span, "this path of a struct"));
        };
        let name = segment.ident.to_string();
        if let Some(def) = self.struct_named(&name) {
            if !segment.arguments.is_empty() {
                return Err(takes_no_arguments(&name, span));
            }
            return Ok(def);
        }
        if name == "Self" {
            return Err(Diagnostic::check("E0411", span, "cannot find type `Self` in this scope")
                .label("`Self` is only available in impls, traits, or type definitions"));
        }
        let taken = crate::signature::builtin_type(&name).is_some()
            || crate::library::is_known_type(&name)
            || self.lookup(&name, span)?.is_some();
        if taken {
            if crate::library::is_known_type(&name) {
                return Err(Diagnostic::unsupported(span, format!("a pattern of `{name}`")));
            }
            let words = format!("expected struct, variant or union type, found `{name}`");
            return Err(Diagnostic::check("E0574", span, words)
                .label("not a struct, variant or union type"));
        }
        let (code, what) = unknown;
        let fault =
            Diagnostic::check(code, span, format!("cannot find {what} `{name}` in this scope"));
        let known = self.struct_names();
        Err(match crate::library::nearest(&name, known.iter().map(String::as_str)) {
            Some(near) => {
                fault.label(format!("help: a struct with a similar name exists: `{near}`"))
            }
            None => fault.label("not found in this scope"),
        })
    }

    /// Every struct in scope, for the nearest spelling.
    pub(super) fn struct_names(&self) -> Vec<String> {
        let own = self.scopes.iter().flat_map(|scope| scope.types.keys().cloned());
        let known = self.names.structures();
        own.chain(known.iter().map(|def| def.name().to_string())).collect()
    }
}

/// `Point<i32>` of a struct without parameters.
pub(super) fn takes_no_arguments(name: &str, span: Span) -> Box<Diagnostic> {
    let words = format!("struct takes 0 generic arguments but some were supplied: `{name}`");
    Diagnostic::check("E0107", span, words).label("expected 0 generic arguments")
}

/// `Self` where there is none.
pub(super) fn self_outside(span: Span) -> Box<Diagnostic> {
    Diagnostic::check("E0433", span, "cannot find `Self` in this scope")
        .label("`Self` is only available in impls, traits, or type definitions")
}

/// A reference is part of a value of the type; those that a function takes are not.
fn holds_reference(ty: &Ty) -> bool {
    match ty {
        Ty::Ref(..) => true,
        Ty::Tuple(parts) | Ty::Named(_, parts) => parts.iter().any(holds_reference),
        Ty::Array(element, _) | Ty::Slice(element) => holds_reference(element),
        _ => false,
    }
}

fn field_names(fields: &syn::Fields) -> Checked<(Form, Vec<Cow<'static, str>>)> {
    match fields {
        syn::Fields::Named(fields) => {
            let mut names: Vec<Cow<'static, str>> = Vec::new();
            for ident in fields.named.iter().filter_map(|field| field.ident.as_ref()) {
                let name = ident.to_string();
                if names.iter().any(|own| *own == name) {
                    let words = format!("field `{name}` is already declared");
                    return Err(Diagnostic::check("E0124", span_of(ident.span()), words)
                        .label("field already declared"));
                }
                names.push(name.into());
            }
            Ok((Form::Named, names))
        }
        syn::Fields::Unnamed(fields) => {
            let names = (0..fields.unnamed.len()).map(|at| at.to_string().into());
            Ok((Form::Tuple, names.collect()))
        }
        syn::Fields::Unit => Ok((Form::Unit, Vec::new())),
    }
}

fn derives(attributes: &[syn::Attribute]) -> Checked<Derives> {
    let mut out = Derives::default();
    for attribute in attributes {
        let path = attribute.path();
        if ["doc", "allow", "warn", "expect", "must_use"].iter().any(|name| path.is_ident(name)) {
            continue;
        }
        if !path.is_ident("derive") {
            let words = "attributes of structs other than `derive`";
            return Err(Diagnostic::unsupported(span_of(path.span()), words));
        }
        type Paths = syn::punctuated::Punctuated<syn::Path, syn::Token![,]>;
        let paths = attribute.parse_args_with(Paths::parse_terminated);
        for path in paths.map_err(|error| super::parse_fault(&error))? {
            derive(&path, &mut out)?;
        }
    }
    Ok(out)
}

fn derive(path: &syn::Path, out: &mut Derives) -> Checked<()> {
    let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    let flag = match name.as_str() {
        "Clone" => &mut out.clone,
        "Copy" => &mut out.copy,
        "Debug" => &mut out.debug,
        "Default" => &mut out.default,
        "PartialEq" => &mut out.partial_eq,
        "Eq" => &mut out.eq,
        "PartialOrd" => &mut out.partial_ord,
        "Ord" => &mut out.ord,
        _ => {
            let words = format!("`#[derive({name})]`");
            return Err(Diagnostic::unsupported(span_of(path.span()), words));
        }
    };
    if std::mem::replace(flag, true) {
        let words = format!("conflicting implementations of trait `{name}`");
        return Err(Diagnostic::check("E0119", span_of(path.span()), words));
    }
    Ok(())
}
