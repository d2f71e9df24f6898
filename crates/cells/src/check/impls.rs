//! `impl` blocks: associated functions, methods and constants, and the calls of them.

use super::call::{Arguments, Site};
use super::expr::unique;
use super::structs::{self_outside, takes_no_arguments};
use super::{Checked, Checker};
use crate::code::FnCell;
use crate::diagnostic::Diagnostic;
use crate::fold::fold;
use crate::hir::{Callee, Expr, Kind};
use crate::ir::Span;
use crate::library;
use crate::place::{between, span_of};
use crate::signature::Receiver;
use crate::structs::{Associated, StructDef};
use crate::ty::{FnSig, Ty};
use std::sync::Arc;
use syn::spanned::Spanned;

impl Checker<'_> {
    /// The signatures and constants of an `impl` block.
    pub(super) fn declare_impl(&mut self, item: &syn::ItemImpl) -> Checked<()> {
        let def = self.impl_owner(item)?;
        let outer = self.self_ty.replace(def.clone());
        let declared = self.declare_impl_items(item, &def);
        self.self_ty = outer;
        declared
    }

    fn impl_owner(&mut self, item: &syn::ItemImpl) -> Checked<Arc<StructDef>> {
        let span = span_of(item.impl_token.span);
        if item.trait_.is_some() {
            return Err(Diagnostic::unsupported(span, "implementations of traits"));
        }
        if !item.generics.params.is_empty() {
            return Err(Diagnostic::unsupported(span, "generic `impl` blocks"));
        }
        let at = span_of(item.self_ty.span());
        if let syn::Type::Path(path) = &*item.self_ty
            && let Some(segment) = path.path.segments.last()
            && let Some(def) = self.struct_named(&segment.ident.to_string())
        {
            if !segment.arguments.is_empty() {
                return Err(takes_no_arguments(def.name(), at));
            }
            return Ok(def);
        }
        let ty = self.item_type(&item.self_ty)?;
        Err(match ty {
            Ty::Named(..) => Diagnostic::check(
                "E0116",
                at,
                "cannot define inherent `impl` for a type outside of the crate where the type \
                 is defined",
            )
            .help("write a function that takes it"),
            _ => Diagnostic::check(
                "E0390",
                at,
                format!("cannot define inherent `impl` for primitive type `{ty}`"),
            )
            .help("write a function that takes it"),
        })
    }

    fn declare_impl_items(&mut self, item: &syn::ItemImpl, def: &Arc<StructDef>) -> Checked<()> {
        for inner in &item.items {
            if let syn::ImplItem::Const(constant) = inner {
                let ty = self.item_type(&constant.ty)?;
                let expr = self.expr_of(&constant.expr, &ty)?;
                self.select()?;
                self.default_inside(&expr.ty);
                let Some(value) = fold(&expr, &self.infer)? else {
                    return Err(Diagnostic::unsupported(
                        expr.span,
                        "this constant: only arithmetic on literals and other constants",
                    ));
                };
                let value = Associated::Constant(ty, value);
                self.associate(def, &constant.ident, value)?;
            }
        }
        for inner in &item.items {
            match inner {
                syn::ImplItem::Fn(function) => {
                    let (receiver, cell) = self.method_cell(function, def)?;
                    let value = Associated::Function { receiver, cell };
                    self.associate(def, &function.sig.ident, value)?;
                }
                syn::ImplItem::Const(_) => {}
                other => {
                    let span = span_of(other.span());
                    return Err(Diagnostic::unsupported(span, "this item of an `impl` block"));
                }
            }
        }
        Ok(())
    }

    fn associate(
        &mut self,
        def: &Arc<StructDef>,
        ident: &syn::Ident,
        value: Associated,
    ) -> Checked<()> {
        let name = ident.to_string();
        if self.associated.iter().any(|(id, own, _)| *id == def.id && *own == name) {
            return Err(Diagnostic::check(
                "E0592",
                span_of(ident.span()),
                format!("duplicate definitions with name `{name}`"),
            )
            .label(format!("duplicate definitions for `{name}`")));
        }
        self.associated.push((def.id, name, value));
        Ok(())
    }

    fn method_cell(
        &mut self,
        function: &syn::ImplItemFn,
        def: &Arc<StructDef>,
    ) -> Checked<(Option<Receiver>, Arc<FnCell>)> {
        let sig = &function.sig;
        self.refuse_unusual(sig)?;
        let receiver = match sig.inputs.first() {
            Some(syn::FnArg::Receiver(own)) => Some(receiver_of(own)?),
            _ => None,
        };
        let (params, ret) = self.read_signature(sig, Some(def))?;
        let start = span_of(sig.fn_token.span);
        let end = super::syntax::block_span(&function.block);
        let lends_first = matches!(receiver, Some(Receiver::Ref | Receiver::Mut))
            && matches!(&sig.output, syn::ReturnType::Type(_, ty)
                if super::items::elided_reference(ty).is_some());
        let cell = FnCell {
            id: unique(),
            name: format!("{}::{}", def.name(), sig.ident),
            sig: Arc::new(FnSig { params, ret }),
            code: Default::default(),
            source: self.text(between(start, end)),
            lends: super::items::lenders(sig),
            lends_first,
        };
        Ok((receiver, Arc::new(cell)))
    }

    /// The bodies of an `impl` block.
    pub(super) fn impl_bodies(&mut self, item: &syn::ItemImpl) -> Checked<()> {
        let def = self.impl_owner(item)?;
        for inner in &item.items {
            let syn::ImplItem::Fn(function) = inner else { continue };
            let name = function.sig.ident.to_string();
            let Some(Associated::Function { cell, .. }) = self.associated_with(&def, &name) else {
                continue;
            };
            self.function_item(&function.sig, &function.block, cell, Some(def.clone()))?;
        }
        Ok(())
    }

    /// What `impl` blocks gave the struct under a name.
    pub(super) fn associated_with(&self, def: &StructDef, name: &str) -> Option<Associated> {
        let own = self.associated.iter().rev().find(|(id, own, _)| *id == def.id && own == name);
        match own {
            Some((.., value)) => Some(value.clone()),
            None => {
                self.names.associated(def.id, name).filter(|value| !value.names_any(&self.replaced))
            }
        }
    }

    /// Everything that `impl` blocks gave the struct.
    pub(super) fn associated_names(&self, def: &StructDef) -> Vec<String> {
        let own = self.associated.iter().filter(|(id, ..)| *id == def.id);
        let mut names: Vec<String> = own.map(|(_, name, _)| name.clone()).collect();
        names.extend(self.names.associated_names(def.id));
        names
    }

    /// A method of a struct along the receiver's dereferences: the receiver as the method takes it.
    pub(super) fn own_method(
        &mut self,
        receiver: Expr,
        name: &str,
    ) -> Checked<Result<(Arc<FnCell>, Expr), Expr>> {
        let mut ty = self.infer.shallow(&receiver.ty);
        let mut steps = Vec::new();
        let def = loop {
            match &ty {
                Ty::Struct(def) => break def.clone(),
                Ty::Ref(_, to) => {
                    steps.push(false);
                    ty = self.infer.shallow(to);
                }
                Ty::Named("Box", inner) => {
                    steps.push(true);
                    ty = self.infer.shallow(&inner[0]);
                }
                _ => return Ok(Err(receiver)),
            }
        };
        let Some(Associated::Function { receiver: Some(taken), cell }) =
            self.associated_with(&def, name)
        else {
            return Ok(Err(receiver));
        };
        let mut place = receiver;
        for is_box in steps {
            let (ty, span) = (self.infer.shallow(&place.ty), place.span);
            place = match (&ty, is_box) {
                (Ty::Named(_, inner), true) => {
                    let ty = inner[0].clone();
                    Expr { kind: Kind::Field(Box::new(place), u32::MAX), ty, span }
                }
                (Ty::Ref(_, to), _) => {
                    Expr { ty: (**to).clone(), kind: Kind::Deref(Box::new(place)), span }
                }
                _ => unreachable!("the steps were taken from this type"),
            };
        }
        Ok(Ok((cell, self.adjust(place, Some(taken), false)?)))
    }

    pub(super) fn own_method_call(
        &mut self,
        cell: Arc<FnCell>,
        receiver: Expr,
        arguments: Arguments<'_>,
        site: Site,
    ) -> Checked<Expr> {
        let sig = cell.sig.clone();
        let mut args = vec![receiver];
        args.extend(self.plain_arguments(&sig.params[1..], arguments, site)?);
        let kind = Kind::Call(Callee::Method(cell), args);
        Ok(Expr { kind, ty: sig.ret.clone(), span: site.whole })
    }

    /// `Point::new(…)`, and `Point::norm(&p)`.
    pub(super) fn associated_call(
        &mut self,
        def: &Arc<StructDef>,
        name: &str,
        arguments: Arguments<'_>,
        site: Site,
    ) -> Checked<Expr> {
        match self.associated_with(def, name) {
            Some(Associated::Function { cell, .. }) => {
                let sig = cell.sig.clone();
                let args = self.plain_arguments(&sig.params, arguments, site)?;
                let kind = Kind::Call(Callee::Function(cell), args);
                Ok(Expr { kind, ty: sig.ret.clone(), span: site.whole })
            }
            Some(Associated::Constant(ty, _)) => Err(self.not_callable(&ty, site.whole)),
            None if name == "default" && def.derives.default => {
                self.default_value(&Ty::Struct(def.clone()), arguments, site)
            }
            None => Err(self.no_associated(def, name, site.name)),
        }
    }

    /// `T::default()` of a type that has one.
    pub(super) fn default_value(
        &mut self,
        ty: &Ty,
        arguments: Arguments<'_>,
        site: Site,
    ) -> Checked<Expr> {
        if !arguments.is_empty() {
            return Err(self.wrong_arity(0, arguments.len(), site));
        }
        let kind = Kind::Literal(library::default_of(ty));
        Ok(Expr { kind, ty: ty.clone(), span: site.whole })
    }

    /// `Point::ORIGIN`, `Point::new` as a value.
    pub(super) fn associated_value(
        &mut self,
        def: &Arc<StructDef>,
        name: &str,
        span: Span,
    ) -> Checked<Expr> {
        match self.associated_with(def, name) {
            Some(Associated::Function { cell, .. }) => {
                let ty = Ty::FnItem(cell.id, cell.sig.clone());
                Ok(Expr { kind: Kind::Function(cell), ty, span })
            }
            Some(Associated::Constant(ty, value)) => {
                Ok(Expr { kind: Kind::Literal(value), ty, span })
            }
            None => Err(self.no_associated(def, name, span)),
        }
    }

    fn no_associated(&self, def: &StructDef, name: &str, span: Span) -> Box<Diagnostic> {
        let own = def.name();
        if matches!(name, "clone" | "eq" | "ne" | "cmp" | "partial_cmp" | "fmt" | "default")
            || library::is_known_elsewhere(&Ty::unit(), None, name)
        {
            return Diagnostic::unsupported(span, format!("the path `{own}::{name}`"));
        }
        let fault = Diagnostic::check(
            "E0599",
            span,
            format!(
                "no associated function or constant named `{name}` found for struct `{own}` in \
                 the current scope"
            ),
        );
        let known = self.associated_names(def);
        match library::nearest(name, known.iter().map(String::as_str)) {
            Some(near) => fault.label(format!(
                "help: there is an associated function `{near}` with a similar name"
            )),
            None => fault.label(format!("function or associated item not found in `{own}`")),
        }
    }

    /// Why a struct has no such method.
    pub(super) fn no_own_method(&self, def: &StructDef, name: &str, span: Span) -> Box<Diagnostic> {
        let own = def.name();
        let fault = Diagnostic::check(
            "E0599",
            span,
            format!("no method named `{name}` found for struct `{own}` in the current scope"),
        );
        if self.associated_with(def, name).is_some() {
            return fault
                .label("this is an associated function, not a method")
                .help(format!("use `{own}::{name}(…)`"));
        }
        if let Some(at) = def.position(name) {
            let fault = fault.label("field, not a method");
            return match def.fields()[at] {
                Ty::FnPtr(_) | Ty::Named("Box" | "Jit" | "JitTree" | "JitUpdate", _) => {
                    fault.help(format!("call what the field holds: `(value.{name})(…)`"))
                }
                _ => fault.help("remove the parentheses"),
            };
        }
        let derive = match name {
            "clone" => Some("Clone"),
            "eq" | "ne" => Some("PartialEq"),
            "cmp" | "max" | "min" => Some("Ord"),
            _ => None,
        };
        if let Some(derive) = derive {
            return fault
                .label(format!("method not found in `{own}`"))
                .help(format!("derive it where the struct is defined: `#[derive({derive})]`"));
        }
        let known = self.associated_names(def);
        match library::nearest(name, known.iter().map(String::as_str)) {
            Some(near) => fault
                .label(format!("help: there is a method `{near}` with a similar name"))
                .help(format!("write `{near}`")),
            None => fault.label(format!("method not found in `{own}`")),
        }
    }

    /// `Self` as a path's owner outside of an `impl` block.
    pub(super) fn refuse_lone_self(&self, owner: &str, span: Span) -> Checked<()> {
        if owner == "Self" && self.self_ty.is_none() {
            return Err(self_outside(span));
        }
        Ok(())
    }
}

/// `self`, `&self` or `&mut self`.
fn receiver_of(receiver: &syn::Receiver) -> Checked<Receiver> {
    match &receiver.kind {
        syn::ReceiverKind::Value => Ok(Receiver::Value),
        syn::ReceiverKind::Reference(_, _, Some(_)) => Ok(Receiver::Mut),
        syn::ReceiverKind::Reference(..) => Ok(Receiver::Ref),
        syn::ReceiverKind::Typed(_, ty) => match &**ty {
            syn::Type::Path(path) if path.path.is_ident("Self") => Ok(Receiver::Value),
            syn::Type::Reference(reference) if reference.mutability.is_some() => Ok(Receiver::Mut),
            syn::Type::Reference(_) => Ok(Receiver::Ref),
            _ => Err(Diagnostic::unsupported(
                span_of(receiver.self_token.span),
                "a receiver other than `self`, `&self` and `&mut self`",
            )),
        },
        _ => Err(Diagnostic::unsupported(
            span_of(receiver.self_token.span),
            "a receiver other than `self`, `&self` and `&mut self`",
        )),
    }
}
