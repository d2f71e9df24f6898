//! `fn` and `const` items, and the types that a cell writes.

use super::expr::unique;
use super::{Body, Checked, Checker, Entity, syntax};
use crate::code::FnCell;
use crate::diagnostic::Diagnostic;
use crate::fold::fold;
use crate::hir::{self, Kind};
use crate::ir::Span;
use crate::library;
use crate::place::span_of;
use crate::signature::{TypeScope, callable_bound, read_return, read_type};
use crate::ty::{ClosureKind, FnSig, Ty};
use std::sync::Arc;
use syn::spanned::Spanned;

impl Checker<'_> {
    /// Items are visible in their whole block, before their place too.
    pub(super) fn declare_items(&mut self, statements: &[syn::Stmt]) -> Checked<()> {
        for statement in statements {
            match statement {
                syn::Stmt::Item(syn::Item::Const(item)) => self.constant(item)?,
                syn::Stmt::Item(syn::Item::Use(item)) => self.use_constants(&item.tree),
                syn::Stmt::Item(syn::Item::Fn(item)) => self.declare_function(item)?,
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn item(&mut self, item: &syn::Item) -> Checked<()> {
        let (what, span) = match item {
            syn::Item::Fn(item) => return self.function(item),
            syn::Item::Const(_) => return Ok(()),
            syn::Item::Use(item) if used_constants(&item.tree).is_some() => return Ok(()),
            syn::Item::Use(item) => ("`use` declarations", item.use_token.span),
            syn::Item::Struct(item) => ("structs", item.struct_token.span),
            syn::Item::Enum(item) => ("enums", item.enum_token.span),
            syn::Item::Impl(item) => ("`impl` blocks", item.impl_token.span),
            syn::Item::Trait(item) => ("traits", item.trait_token.span),
            syn::Item::Static(item) => ("`static` items", item.static_token.span),
            syn::Item::Type(item) => ("type aliases", item.type_token.span),
            syn::Item::Mod(item) => ("modules", item.mod_token.span),
            syn::Item::Macro(item) => ("macro definitions", item.mac.path.span()),
            syn::Item::ExternCrate(item) => ("`extern crate`", item.extern_token.span),
            other => ("this item", other.span()),
        };
        Err(Diagnostic::unsupported(span_of(span), what))
    }

    /// `use std::f64::consts::PI;`
    fn use_constants(&mut self, tree: &syn::UseTree) {
        for (name, ty, value) in used_constants(tree).into_iter().flatten() {
            if self.scopes.len() == 1 {
                self.constants.push((name.clone(), ty.clone(), value.clone()));
            }
            self.declare(&name, Entity::Constant(ty, value));
        }
    }

    fn declare_function(&mut self, item: &syn::ItemFn) -> Checked<()> {
        let sig = &item.sig;
        let span = span_of(sig.ident.span());
        if let Some(token) = &sig.asyncness {
            return Err(Diagnostic::unsupported(span_of(token.span), "`async` functions"));
        }
        if !matches!(sig.safety, syn::Safety::Default) {
            return Err(Diagnostic::unsupported(span, "`unsafe` functions"));
        }
        let generic = sig
            .generics
            .params
            .iter()
            .any(|param| !matches!(param, syn::GenericParam::Lifetime(_)));
        if generic {
            return Err(Diagnostic::unsupported(span, "generic functions"));
        }
        let mut params = Vec::new();
        for input in &sig.inputs {
            match input {
                syn::FnArg::Typed(typed) => params.push(self.item_type(&typed.ty)?),
                syn::FnArg::Receiver(_) => {
                    return Err(Diagnostic::parse(
                        span,
                        "`self` parameter is only allowed in associated functions",
                    ));
                }
            }
        }
        let ret = {
            let mut scope = UserTypes { checker: self, holes: false };
            read_return(&sig.output, &mut scope)?
        };
        self.check_elision(sig)?;
        let name = sig.ident.to_string();
        let start = span_of(sig.fn_token.span);
        let end = syntax::block_span(&item.block);
        let cell = Arc::new(FnCell {
            id: unique(),
            name: name.clone(),
            sig: Arc::new(FnSig { params, ret }),
            code: Default::default(),
            source: self.text(crate::place::between(start, end)),
        });
        let twice = self
            .scopes
            .last()
            .is_some_and(|scope| matches!(scope.names.get(&name), Some(Entity::Function(_))));
        if twice {
            return Err(Diagnostic::check(
                "E0428",
                span,
                format!("the name `{name}` is defined multiple times"),
            ));
        }
        if self.scopes.len() == 1 {
            self.top_functions.push(cell.clone());
        }
        self.declare(&name, Entity::Function(cell));
        Ok(())
    }

    /// A returned reference must come from exactly one parameter, or be named.
    fn check_elision(&self, sig: &syn::Signature) -> Checked<()> {
        let syn::ReturnType::Type(_, ret) = &sig.output else { return Ok(()) };
        let Some(span) = elided_reference(ret) else { return Ok(()) };
        let inputs = sig
            .inputs
            .iter()
            .filter_map(|input| match input {
                syn::FnArg::Typed(typed) => Some(count_references(&typed.ty)),
                syn::FnArg::Receiver(_) => None,
            })
            .sum::<usize>();
        if inputs == 1 {
            return Ok(());
        }
        Err(Diagnostic::check("E0106", span, "missing lifetime specifier")
            .label("expected named lifetime parameter"))
    }

    fn function(&mut self, item: &syn::ItemFn) -> Checked<()> {
        let name = item.sig.ident.to_string();
        let Some(Entity::Function(cell)) =
            self.scopes.last().and_then(|scope| scope.names.get(&name)).cloned()
        else {
            return Ok(());
        };
        let body_id = self.next_body;
        self.next_body += 1;
        let ret = cell.sig.ret.clone();
        self.bodies.push(Body {
            id: body_id,
            ret: Some(ret.clone()),
            is_closure: false,
            loops: Vec::new(),
        });
        let before = std::mem::replace(&mut self.diverges, false);
        self.scopes.push(super::Scope { barrier: true, ..Default::default() });
        let checked = self.function_body(item, &cell, &ret);
        self.scopes.pop();
        self.diverges = before;
        self.bodies.pop();
        let (params, body) = checked?;
        self.functions.push(hir::Function { cell, body_id, params, body });
        Ok(())
    }

    fn function_body(
        &mut self,
        item: &syn::ItemFn,
        cell: &FnCell,
        ret: &Ty,
    ) -> Checked<(Vec<hir::Pattern>, hir::Expr)> {
        let mut params = Vec::new();
        let first = self.locals.len();
        for (input, ty) in item.sig.inputs.iter().zip(&cell.sig.params) {
            if let syn::FnArg::Typed(typed) = input {
                let before = self.locals.len();
                params.push(self.binding_pattern(&typed.pat, ty)?);
                self.refuse_twice(first, before)?;
            }
        }
        if ret.is_unit() {
            let body = self.block(&item.block, Some(ret))?;
            return Ok((params, self.coerce(body, ret)?));
        }
        let body = self.block_of(&item.block, ret)?;
        Ok((params, body))
    }

    /// Parameters have names of their own.
    fn refuse_twice(&self, first: usize, new: usize) -> Checked<()> {
        for local in &self.locals[new..] {
            if self.locals[first..new].iter().any(|other| other.name == local.name) {
                return Err(Diagnostic::check(
                    "E0415",
                    local.span,
                    format!(
                        "identifier `{}` is bound more than once in this parameter list",
                        local.name
                    ),
                )
                .label("used as parameter more than once"));
            }
        }
        Ok(())
    }

    fn constant(&mut self, item: &syn::ItemConst) -> Checked<()> {
        let name = item.ident.to_string();
        let ty = self.item_type(&item.ty)?;
        let expr = self.expr_of(&item.expr, &ty)?;
        self.select()?;
        self.default_inside(&expr.ty);
        let Some(value) = fold(&expr, &self.infer)? else {
            return Err(Diagnostic::unsupported(
                expr.span,
                "this constant: only arithmetic on literals and other constants",
            ));
        };
        if self.scopes.len() == 1 {
            self.constants.push((name.clone(), ty.clone(), value.clone()));
        }
        self.declare(&name, Entity::Constant(ty, value));
        Ok(())
    }

    /// A type in an item's signature: nothing is inferred.
    fn item_type(&mut self, ty: &syn::Type) -> Checked<Ty> {
        read_type(ty, &mut UserTypes { checker: self, holes: false })
    }

    /// A type in a body: `_` is inferred.
    pub(super) fn user_type(&mut self, ty: &syn::Type) -> Checked<Ty> {
        read_type(ty, &mut UserTypes { checker: self, holes: true })
    }

    /// An array's length.
    pub(super) fn length_of(&mut self, length: &syn::Expr) -> Checked<u64> {
        if let syn::Expr::Block(block) = length
            && let [syn::Stmt::Expr(inner, None)] = block.block.stmts.as_slice()
        {
            return self.length_of(inner);
        }
        let span = syntax::span(length);
        let checked = self.expr_of(length, &Ty::usize())?;
        if let Kind::Local(_) = checked.kind {
            return Err(Diagnostic::check(
                "E0435",
                span,
                "attempt to use a non-constant value in a constant",
            )
            .label("non-constant value"));
        }
        match fold(&checked, &self.infer)? {
            Some(crate::value::Value::Int(length)) if length >= 0 => Ok(length as u64),
            _ => Err(Diagnostic::unsupported(span, "this array length")),
        }
    }

    /// The cell's text between two places.
    pub(super) fn text(&self, span: Span) -> String {
        let mut out = String::new();
        for number in span.line..=span.end_line {
            let line = self.lines.get(number as usize - 1).copied().unwrap_or_default();
            let from = if number == span.line { span.column as usize - 1 } else { 0 };
            let to =
                if number == span.end_line { span.end_column as usize - 1 } else { usize::MAX };
            out.extend(line.chars().skip(from).take(to.saturating_sub(from)));
            if number < span.end_line {
                out.push('\n');
            }
        }
        out
    }
}

struct UserTypes<'c, 'n> {
    checker: &'c mut Checker<'n>,
    holes: bool,
}

impl TypeScope for UserTypes<'_, '_> {
    fn named(&mut self, name: &syn::Ident, arguments: Vec<Ty>) -> Checked<Ty> {
        let text = name.to_string();
        let span = span_of(name.span());
        if let Some(ty) = library::nominal(&text, &arguments) {
            return Ok(ty);
        }
        if matches!(text.as_str(), "HashMap" | "BTreeMap" | "HashSet" | "Rc" | "Arc") {
            return Err(Diagnostic::unsupported(span, format!("the type `{text}`")));
        }
        if text == "u128" {
            return Err(Diagnostic::unsupported(span, "`u128` values"));
        }
        let fault =
            Diagnostic::check("E0425", span, format!("cannot find type `{text}` in this scope"));
        Err(match library::nearest(&text, library::type_names()) {
            Some(near) => fault.label(format!("help: a type with a similar name exists: `{near}`")),
            None => fault.label("not found in this scope"),
        })
    }

    fn hole(&mut self, span: Span) -> Checked<Ty> {
        if self.holes {
            return Ok(self.checker.infer.fresh());
        }
        Err(Diagnostic::check(
            "E0121",
            span,
            "the placeholder `_` is not allowed within types on item signatures",
        )
        .label("not allowed in type signatures"))
    }

    fn length(&mut self, length: &syn::Expr) -> Checked<Ty> {
        if let syn::Expr::Infer(_) = length {
            return self.hole(syntax::span(length));
        }
        Ok(Ty::Const(self.checker.length_of(length)?))
    }

    fn implementor(&mut self, ty: &syn::TypeImplTrait) -> Checked<Ty> {
        if !self.holes
            && let Some((kind, sig)) = callable_bound(&ty.bounds, self)?
        {
            let name = match kind {
                ClosureKind::Fn => "impl Fn",
                ClosureKind::FnMut => "impl FnMut",
                ClosureKind::FnOnce => "impl FnOnce",
            };
            return Ok(Ty::generic(name, Ty::DynFn(Arc::new(sig))));
        }
        Err(Diagnostic::unsupported(
            span_of(ty.impl_token.span),
            "`impl Trait` types other than `impl Fn`",
        ))
    }
}

/// The constants that a `use` names, when it names nothing else.
fn used_constants(tree: &syn::UseTree) -> Option<Vec<(String, Ty, crate::value::Value)>> {
    fn walk(
        tree: &syn::UseTree,
        path: &mut Vec<String>,
        out: &mut Vec<(String, Ty, crate::value::Value)>,
    ) -> Option<()> {
        match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                let walked = walk(&inner.tree, path, out);
                path.pop();
                walked
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                let segments: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
                let (ty, value) = library::associated_constant(&segments)?;
                out.push((name, ty, value));
                Some(())
            }
            syn::UseTree::Group(group) => {
                group.items.iter().try_for_each(|item| walk(item, path, out))
            }
            _ => None,
        }
    }
    let mut out = Vec::new();
    walk(tree, &mut Vec::new(), &mut out)?;
    Some(out)
}

/// The first reference without a lifetime in a type.
fn elided_reference(ty: &syn::Type) -> Option<Span> {
    match ty {
        syn::Type::Reference(reference) => match &reference.lifetime {
            None => Some(span_of(reference.and_token.span)),
            Some(_) => elided_reference(&reference.elem),
        },
        syn::Type::Tuple(tuple) => tuple.elems.iter().find_map(elided_reference),
        syn::Type::Array(array) => elided_reference(&array.elem),
        syn::Type::Slice(slice) => elided_reference(&slice.elem),
        syn::Type::Paren(inner) => elided_reference(&inner.elem),
        syn::Type::Path(path) => {
            path.path.segments.iter().find_map(|segment| match &segment.arguments {
                syn::PathArguments::AngleBracketed(angle) => {
                    angle.args.iter().find_map(|argument| match argument {
                        syn::GenericArgument::Type(ty) => elided_reference(ty),
                        _ => None,
                    })
                }
                _ => None,
            })
        }
        _ => None,
    }
}

fn count_references(ty: &syn::Type) -> usize {
    match ty {
        syn::Type::Reference(reference) => 1 + count_references(&reference.elem),
        syn::Type::Tuple(tuple) => tuple.elems.iter().map(count_references).sum(),
        syn::Type::Array(array) => count_references(&array.elem),
        syn::Type::Slice(slice) => count_references(&slice.elem),
        syn::Type::Paren(inner) => count_references(&inner.elem),
        syn::Type::Path(path) => path
            .path
            .segments
            .iter()
            .map(|segment| match &segment.arguments {
                syn::PathArguments::AngleBracketed(angle) => angle
                    .args
                    .iter()
                    .map(|argument| match argument {
                        syn::GenericArgument::Type(ty) => count_references(ty),
                        _ => 0,
                    })
                    .sum(),
                _ => 0,
            })
            .sum(),
        _ => 0,
    }
}
