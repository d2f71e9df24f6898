//! `fn` and `const` items, and the types that a cell writes.

use super::expr::unique;
use super::more_macros::imports_write;
use super::structs::{struct_items, takes_no_arguments};
use super::{Body, Checked, Checker, Entity, syntax};
use crate::code::FnCell;
use crate::diagnostic::Diagnostic;
use crate::fold::fold;
use crate::hir::{self, Kind};
use crate::ir::Span;
use crate::library;
use crate::place::span_of;
use crate::signature::{TypeScope, callable_bound, read_return, read_type};
use crate::structs::StructDef;
use crate::ty::{ClosureKind, FnSig, Ty};
use std::sync::Arc;
use syn::spanned::Spanned;

impl Checker<'_> {
    /// Items are visible in their whole block, before their place too.
    pub(super) fn declare_items(&mut self, statements: &[syn::Stmt]) -> Checked<()> {
        let structs = struct_items(statements)?;
        self.declare_shells(&structs)?;
        let names: Vec<String> = structs.iter().map(|own| own.name()).collect();
        let of_struct = |item: &syn::ItemConst| names_one_of(&item.ty, &names);
        for statement in statements {
            match statement {
                syn::Stmt::Item(syn::Item::Const(item)) if !of_struct(item) => {
                    self.constant(item)?;
                }
                syn::Stmt::Item(syn::Item::Use(item)) if imports_write(&item.tree) => {
                    self.writes |= self.scopes.len() == 1;
                    self.own_scope().writes = true;
                }
                syn::Stmt::Item(syn::Item::Use(item)) => self.use_constants(&item.tree),
                _ => {}
            }
        }
        self.declare_fields(&structs)?;
        for statement in statements {
            match statement {
                syn::Stmt::Item(syn::Item::Const(item)) if of_struct(item) => {
                    self.constant(item)?;
                }
                syn::Stmt::Item(syn::Item::Fn(item)) => self.declare_function(item)?,
                _ => {}
            }
        }
        for statement in statements {
            if let syn::Stmt::Item(syn::Item::Impl(item)) = statement {
                self.declare_impl(item)?;
            }
        }
        Ok(())
    }

    pub(super) fn item(&mut self, item: &syn::Item) -> Checked<()> {
        let (what, span) = match item {
            syn::Item::Fn(item) => return self.function(item),
            syn::Item::Impl(item) => return self.impl_bodies(item),
            syn::Item::Const(_) | syn::Item::Struct(_) => return Ok(()),
            syn::Item::Use(item)
                if used_constants(&item.tree).is_some() || imports_write(&item.tree) =>
            {
                return Ok(());
            }
            syn::Item::Use(item) => ("`use` declarations", item.use_token.span),
            syn::Item::Enum(item) => ("enums", item.enum_token.span),
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

    /// Functions of kinds that the tier does not have.
    pub(super) fn refuse_unusual(&self, sig: &syn::Signature) -> Checked<()> {
        let span = span_of(sig.ident.span());
        if let Some(token) = &sig.asyncness {
            return Err(Diagnostic::unsupported(span_of(token.span), "`async` functions"));
        }
        if !matches!(sig.safety, syn::Safety::Default) {
            return Err(Diagnostic::unsupported(span, "`unsafe` functions"));
        }
        let is_lifetime =
            |param: &syn::GenericParam| matches!(param, syn::GenericParam::Lifetime(_));
        if !sig.generics.params.iter().all(is_lifetime) {
            return Err(Diagnostic::unsupported(span, "generic functions"));
        }
        Ok(())
    }

    /// Parameters and result; a method's receiver is its first parameter.
    pub(super) fn read_signature(
        &mut self,
        sig: &syn::Signature,
        owner: Option<&Arc<StructDef>>,
    ) -> Checked<(Vec<Ty>, Ty)> {
        let mut params = Vec::new();
        for input in &sig.inputs {
            match (input, owner) {
                (syn::FnArg::Typed(typed), _) => params.push(self.item_type(&typed.ty)?),
                (syn::FnArg::Receiver(receiver), Some(def)) => {
                    let own = Ty::Struct(def.clone());
                    params.push(match &receiver.kind {
                        syn::ReceiverKind::Value => own,
                        syn::ReceiverKind::Reference(_, _, mutable) => {
                            Ty::Ref(mutable.is_some(), Arc::new(own))
                        }
                        syn::ReceiverKind::Typed(_, ty) => self.item_type(ty)?,
                        _ => own,
                    });
                }
                (syn::FnArg::Receiver(_), None) => {
                    return Err(Diagnostic::parse(
                        span_of(sig.ident.span()),
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
        Ok((params, ret))
    }

    fn declare_function(&mut self, item: &syn::ItemFn) -> Checked<()> {
        let sig = &item.sig;
        let span = span_of(sig.ident.span());
        self.refuse_unusual(sig)?;
        let (params, ret) = self.read_signature(sig, None)?;
        let name = sig.ident.to_string();
        let start = span_of(sig.fn_token.span);
        let end = syntax::block_span(&item.block);
        let cell = Arc::new(FnCell {
            id: unique(),
            name: name.clone(),
            sig: Arc::new(FnSig { params, ret }),
            code: Default::default(),
            source: self.text(crate::place::between(start, end)),
            lends: lenders(sig),
            lends_first: false,
        });
        let twice = self.scopes.last().is_some_and(|scope| {
            matches!(scope.names.get(&name), Some(Entity::Function(_) | Entity::Constructor(_)))
        });
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
        let of_receiver = sig.inputs.iter().any(|input| match input {
            syn::FnArg::Receiver(own) => match &own.kind {
                syn::ReceiverKind::Reference(..) => true,
                syn::ReceiverKind::Typed(_, ty) => matches!(**ty, syn::Type::Reference(_)),
                _ => false,
            },
            syn::FnArg::Typed(_) => false,
        });
        if of_receiver {
            return Ok(());
        }
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
        self.function_item(&item.sig, &item.block, cell, None)
    }

    /// The body of a function or method.
    pub(super) fn function_item(
        &mut self,
        sig: &syn::Signature,
        block: &syn::Block,
        cell: Arc<FnCell>,
        owner: Option<Arc<StructDef>>,
    ) -> Checked<()> {
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
        let outer = std::mem::replace(&mut self.self_ty, owner);
        self.scopes.push(super::Scope { barrier: true, ..Default::default() });
        let checked = self.function_body(sig, block, &cell, &ret);
        self.scopes.pop();
        self.self_ty = outer;
        self.diverges = before;
        self.bodies.pop();
        let (params, body) = checked?;
        self.functions.push(hir::Function { cell, body_id, params, body });
        Ok(())
    }

    fn function_body(
        &mut self,
        sig: &syn::Signature,
        block: &syn::Block,
        cell: &FnCell,
        ret: &Ty,
    ) -> Checked<(Vec<hir::Pattern>, hir::Expr)> {
        let mut params = Vec::new();
        let first = self.locals.len();
        for (input, ty) in sig.inputs.iter().zip(&cell.sig.params) {
            let before = self.locals.len();
            match input {
                syn::FnArg::Typed(typed) => params.push(self.binding_pattern(&typed.pat, ty)?),
                syn::FnArg::Receiver(receiver) => params.push(self.receiver(receiver, ty)),
            }
            self.refuse_twice(first, before)?;
        }
        if ret.is_unit() {
            let body = self.block(block, Some(ret))?;
            return Ok((params, self.coerce(body, ret)?));
        }
        let body = self.block_of(block, ret)?;
        Ok((params, body))
    }

    /// `self` as a parameter.
    fn receiver(&mut self, receiver: &syn::Receiver, ty: &Ty) -> hir::Pattern {
        let span = span_of(receiver.self_token.span);
        let local = self.new_local("self", ty.clone(), receiver.mutability.is_some(), span);
        self.declare("self", Entity::Local(local));
        let kind = hir::PatternKind::Bind { local, by: hir::Binding::Value, inner: None };
        hir::Pattern { kind, ty: ty.clone(), span }
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
    pub(super) fn item_type(&mut self, ty: &syn::Type) -> Checked<Ty> {
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
        if let Some(def) = self.checker.struct_named(&text) {
            if !arguments.is_empty() {
                return Err(takes_no_arguments(&text, span));
            }
            return Ok(Ty::Struct(def));
        }
        if text == "Self" {
            return Err(Diagnostic::check("E0411", span, "cannot find type `Self` in this scope")
                .label("`Self` is only available in impls, traits, or type definitions"));
        }
        if matches!(text.as_str(), "HashMap" | "BTreeMap" | "HashSet" | "Rc" | "Arc") {
            return Err(Diagnostic::unsupported(span, format!("the type `{text}`")));
        }
        if text == "u128" {
            return Err(Diagnostic::unsupported(span, "`u128` values"));
        }
        let fault =
            Diagnostic::check("E0425", span, format!("cannot find type `{text}` in this scope"));
        let own = self.checker.struct_names();
        let known = library::type_names().map(|name| -> &str { name });
        let known = known.chain(own.iter().map(String::as_str));
        let near = library::nearest(&text, known);
        Err(match near {
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

/// Whether a type names one of the structs.
fn names_one_of(ty: &syn::Type, names: &[String]) -> bool {
    match ty {
        syn::Type::Path(path) => path.path.segments.iter().any(|segment| {
            names.iter().any(|name| segment.ident == name)
                || matches!(&segment.arguments, syn::PathArguments::AngleBracketed(angle)
                    if angle.args.iter().any(|argument| matches!(argument,
                        syn::GenericArgument::Type(ty) if names_one_of(ty, names))))
        }),
        syn::Type::Tuple(tuple) => tuple.elems.iter().any(|part| names_one_of(part, names)),
        syn::Type::Array(array) => names_one_of(&array.elem, names),
        syn::Type::Reference(reference) => names_one_of(&reference.elem, names),
        syn::Type::Paren(inner) => names_one_of(&inner.elem, names),
        _ => false,
    }
}

/// The parameters that references in the result come from, by their lifetimes; `None` where the
/// result has none, or where it cannot be told.
pub(super) fn lenders(sig: &syn::Signature) -> Option<Vec<usize>> {
    let syn::ReturnType::Type(_, ret) = &sig.output else { return None };
    let mut wanted = Vec::new();
    lifetimes(ret, &mut wanted)?;
    if wanted.is_empty() {
        return None;
    }
    let elided = wanted.contains(&None);
    let mut out = Vec::new();
    for (at, input) in sig.inputs.iter().enumerate() {
        let mut own = Vec::new();
        let of_receiver = match input {
            syn::FnArg::Receiver(receiver) => match &receiver.kind {
                syn::ReceiverKind::Reference(_, lifetime, _) => {
                    own.push(lifetime.as_ref().map(|own| own.ident.to_string()));
                    true
                }
                syn::ReceiverKind::Typed(_, ty) => {
                    lifetimes(ty, &mut own)?;
                    true
                }
                _ => false,
            },
            syn::FnArg::Typed(typed) => {
                lifetimes(&typed.ty, &mut own)?;
                false
            }
        };
        let named = own.iter().any(|own| own.is_some() && wanted.contains(own));
        if named || (elided && !own.is_empty() && (of_receiver || !has_receiver(sig))) {
            out.push(at);
        }
    }
    Some(out)
}

fn has_receiver(sig: &syn::Signature) -> bool {
    matches!(sig.inputs.first(), Some(syn::FnArg::Receiver(own))
        if !matches!(own.kind, syn::ReceiverKind::Value))
}

/// The lifetimes of the references in a type, `None` where one is left out. No answer for types
/// whose lifetimes are not written at all.
fn lifetimes(ty: &syn::Type, out: &mut Vec<Option<String>>) -> Option<()> {
    match ty {
        syn::Type::Reference(reference) => {
            out.push(reference.lifetime.as_ref().map(|own| own.ident.to_string()));
            lifetimes(&reference.elem, out)
        }
        syn::Type::Tuple(tuple) => tuple.elems.iter().try_for_each(|part| lifetimes(part, out)),
        syn::Type::Array(array) => lifetimes(&array.elem, out),
        syn::Type::Slice(slice) => lifetimes(&slice.elem, out),
        syn::Type::Paren(inner) => lifetimes(&inner.elem, out),
        syn::Type::Path(path) => path.path.segments.iter().try_for_each(|segment| {
            let syn::PathArguments::AngleBracketed(angle) = &segment.arguments else {
                return Some(());
            };
            angle.args.iter().try_for_each(|argument| match argument {
                syn::GenericArgument::Type(ty) => lifetimes(ty, out),
                _ => Some(()),
            })
        }),
        _ => None,
    }
}

/// The first reference without a lifetime in a type.
pub(super) fn elided_reference(ty: &syn::Type) -> Option<Span> {
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
