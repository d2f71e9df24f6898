//! Calls: functions of the prelude and the library, `fn` items, closures, methods.

use super::expr::WantedClosure;
use super::{Checked, Checker, Entity, is_references_to_arrays};
use crate::diagnostic::Diagnostic;
use crate::hir::{Callee, Expr, Kind};
use crate::ir::Span;
use crate::library::{self, Candidate};
use crate::place::{between, span_of};
use crate::signature::{Bound, Receiver, Signature};
use crate::structs::Form;
use crate::ty::{FnSig, Ty, VarKind, substitute};
use std::sync::Arc;

pub(super) type Arguments<'a> = &'a syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>;

/// A signature with fresh variables for its parameters.
struct Instance {
    variables: Vec<Ty>,
    params: Vec<Ty>,
    ret: Ty,
}

/// Where a call stands, for messages.
#[derive(Clone, Copy)]
pub(super) struct Site {
    /// The name that is called.
    pub name: Span,
    pub whole: Span,
    pub is_method: bool,
}

impl Checker<'_> {
    pub(super) fn call(&mut self, call: &syn::ExprCall, expected: Option<&Ty>) -> Checked<Expr> {
        let end = span_of(call.paren_token.span.close());
        if let syn::Expr::Path(path) = &*call.func
            && path.qself.is_none()
        {
            return self.path_call(path, &call.args, end, expected);
        }
        let callee = self.expr(&call.func, None)?;
        self.value_call(callee, &call.args, end)
    }

    fn path_call(
        &mut self,
        path: &syn::ExprPath,
        arguments: Arguments<'_>,
        end: Span,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let name_span = span_of(syn::spanned::Spanned::span(&path.path));
        let site = Site { name: name_span, whole: between(name_span, end), is_method: false };
        let segments: Vec<String> =
            path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let turbofish = path.path.segments.last().and_then(|last| match &last.arguments {
            syn::PathArguments::AngleBracketed(angle) => Some(angle),
            _ => None,
        });
        if let [name] = segments.as_slice() {
            match self.lookup(name, name_span)? {
                Some(Entity::Local(id)) => {
                    let ty = self.locals[id as usize].ty.clone();
                    let callee = Expr { kind: Kind::Local(id), ty, span: name_span };
                    return self.value_call(callee, arguments, end);
                }
                Some(Entity::Function(cell)) => {
                    let sig = cell.sig.clone();
                    let args = self.plain_arguments(&sig.params, arguments, site)?;
                    let kind = Kind::Call(Callee::Function(cell), args);
                    return Ok(Expr { kind, ty: sig.ret.clone(), span: site.whole });
                }
                Some(Entity::Constant(ty, _)) => {
                    return Err(self.not_callable(&ty, site.whole));
                }
                Some(Entity::Constructor(def)) => return self.construct(def, arguments, site),
                None => {}
            }
            if let Some(def) = self.struct_named(name) {
                if def.form == Form::Named {
                    let want = "function, tuple struct or tuple variant";
                    return Err(self.not_a_value(&def, name_span, want));
                }
                return self.construct(def, arguments, site);
            }
            self.refuse_lone_self(name, name_span)?;
            if matches!(name.as_str(), "Ok" | "Err") {
                return self.outcome(name == "Ok", arguments, site, expected);
            }
            if name == "Some" {
                return self.some(arguments, site, expected);
            }
        }
        if let [owner, name] = segments.as_slice() {
            self.refuse_lone_self(owner, name_span)?;
            if let Some(def) = self.struct_named(owner) {
                return self.associated_call(&def, name, arguments, site);
            }
            if name == "default" && owner == "Default" {
                return self.default_expected(arguments, site, expected);
            }
        }
        let text = segments.join("::");
        if let Some(row) = library::function(&text) {
            let on_type = path.path.segments.iter().rev().nth(1).and_then(|segment| match &segment
                .arguments
            {
                syn::PathArguments::AngleBracketed(angle) => Some(angle),
                _ => None,
            });
            let candidate = Candidate::Row(row);
            return self.table_call(
                candidate,
                None,
                arguments,
                turbofish.or(on_type),
                site,
                expected,
            );
        }
        if let [name] = segments.as_slice() {
            if let Some(item) = library::surface_function(name) {
                let candidate = Candidate::Item(item);
                return self.table_call(candidate, None, arguments, turbofish, site, expected);
            }
            if crate::signature::builtin_type(name).is_some() || library::is_known_type(name) {
                return Err(Diagnostic::check(
                    "E0423",
                    name_span,
                    format!("expected function, found type `{name}`"),
                )
                .label("not a function"));
            }
            return Err(self.unknown_name(name, name_span, "function"));
        }
        if let [owner, method] = segments.as_slice()
            && let Some(ty) = library::owner_type(owner)
        {
            return self.path_method(&ty, method, arguments, turbofish, site, expected);
        }
        Err(self.unknown_path(&segments, name_span))
    }

    /// `Default::default()` where the type is known.
    fn default_expected(
        &mut self,
        arguments: Arguments<'_>,
        site: Site,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let ty = expected.map(|ty| self.infer.resolve(ty));
        match ty.filter(|ty| !self.infer.is_open(ty)) {
            Some(ty) if self.field_has(&ty, "Default") => self.default_value(&ty, arguments, site),
            Some(ty) => Err(Diagnostic::check(
                "E0277",
                site.name,
                format!("the trait bound `{ty}: Default` is not satisfied"),
            )),
            None => Err(Diagnostic::unsupported(
                site.name,
                "`Default::default()` where no annotation says the type",
            )),
        }
    }

    /// `f64::sqrt(x)`: the receiver comes first.
    fn path_method(
        &mut self,
        ty: &Ty,
        method: &str,
        arguments: Arguments<'_>,
        turbofish: Option<&syn::AngleBracketedGenericArguments>,
        site: Site,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let Some(candidate) = library::find_method(ty, method, &self.infer) else {
            let text = self.infer.text(ty);
            return Err(Diagnostic::check(
                "E0599",
                site.name,
                format!(
                    "no function or associated item named `{method}` found for type `{text}` in \
                     the current scope"
                ),
            )
            .label(format!("function or associated item not found in `{text}`")));
        };
        let sig = candidate.signature();
        let Some((first, _)) = arguments.iter().next().zip(sig.receiver) else {
            return Err(self.wrong_arity(1 + sig.params.len(), arguments.len(), site));
        };
        let own = match sig.receiver {
            Some(Receiver::Ref) => Ty::reference(ty.clone()),
            Some(Receiver::Mut) => Ty::Ref(true, Arc::new(ty.clone())),
            _ => ty.clone(),
        };
        let receiver = self.expr_of(first, &own)?;
        let rest: syn::punctuated::Punctuated<syn::Expr, syn::Token![,]> =
            arguments.iter().skip(1).cloned().collect();
        self.table_call(candidate, Some((ty.clone(), receiver)), &rest, turbofish, site, expected)
    }

    /// `Ok(…)` and `Err(…)`.
    fn outcome(
        &mut self,
        ok: bool,
        arguments: Arguments<'_>,
        site: Site,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let (value, error) = match expected.map(|ty| self.infer.shallow(ty)) {
            Some(Ty::Named("Result", parts)) => (parts[0].clone(), parts[1].clone()),
            _ => (self.infer.fresh(), self.infer.fresh()),
        };
        let [only] = arguments.iter().collect::<Vec<_>>()[..] else {
            return Err(self.wrong_arity(1, arguments.len(), site));
        };
        let inner = self.expr_of(only, if ok { &value } else { &error })?;
        let kind = if ok { Kind::Some(Box::new(inner)) } else { Kind::Tuple(vec![inner]) };
        let ty = Ty::Named("Result", [value, error].into());
        Ok(Expr { kind, ty, span: site.whole })
    }

    fn some(
        &mut self,
        arguments: Arguments<'_>,
        site: Site,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let hint = match expected.map(|ty| self.infer.shallow(ty)) {
            Some(Ty::Named("Option", inner)) => Some(inner[0].clone()),
            _ => None,
        };
        let [only] = arguments.iter().collect::<Vec<_>>()[..] else {
            return Err(self.wrong_arity(1, arguments.len(), site));
        };
        let inner = self.expr(only, hint.as_ref())?;
        let ty = Ty::generic("Option", inner.ty.clone());
        Ok(Expr { kind: Kind::Some(Box::new(inner)), ty, span: site.whole })
    }

    /// A call of whatever the expression's value is.
    fn value_call(&mut self, callee: Expr, arguments: Arguments<'_>, end: Span) -> Checked<Expr> {
        let whole = between(callee.span, end);
        let _ = self.select();
        let Some(sig) = self.callable_sig(&callee.ty.clone()) else {
            if self.infer.var_kind(&callee.ty) == Some(VarKind::General) {
                return Err(self.annotation_needed(callee.span));
            }
            return Err(self.not_callable(&callee.ty.clone(), whole));
        };
        let site = Site { name: callee.span, whole, is_method: false };
        if sig.params.len() != arguments.len() {
            let is_item = matches!(self.infer.shallow(&callee.ty), Ty::FnItem(..) | Ty::FnPtr(_));
            let mut fault = self.wrong_arity(sig.params.len(), arguments.len(), site);
            if !is_item {
                fault.code = "E0057";
            }
            return Err(fault);
        }
        let args = self.plain_arguments(&sig.params, arguments, site)?;
        let kind = Kind::Call(Callee::Value(Box::new(callee)), args);
        Ok(Expr { kind, ty: sig.ret, span: whole })
    }

    pub(super) fn not_callable(&self, ty: &Ty, span: Span) -> Box<Diagnostic> {
        let text = self.infer.text(ty);
        Diagnostic::check("E0618", span, format!("expected function, found `{text}`"))
            .label("call expression requires function")
    }

    pub(super) fn wrong_arity(&self, want: usize, have: usize, site: Site) -> Box<Diagnostic> {
        let noun = |count: usize| if count == 1 { "argument" } else { "arguments" };
        let verb = if have == 1 { "was" } else { "were" };
        let what = if site.is_method { "method" } else { "function" };
        Diagnostic::check(
            "E0061",
            site.name,
            format!(
                "this {what} takes {want} {} but {have} {} {verb} supplied",
                noun(want),
                noun(have)
            ),
        )
    }

    pub(super) fn plain_arguments(
        &mut self,
        params: &[Ty],
        arguments: Arguments<'_>,
        site: Site,
    ) -> Checked<Vec<Expr>> {
        if params.len() != arguments.len() {
            return Err(self.wrong_arity(params.len(), arguments.len(), site));
        }
        let mut out: Vec<Option<Expr>> = Vec::new();
        for (argument, param) in arguments.iter().zip(params) {
            out.push(match strip(argument) {
                syn::Expr::Closure(_) => None,
                _ => Some(self.expr_of(argument, param)?),
            });
        }
        for ((argument, param), slot) in arguments.iter().zip(params).zip(&mut out) {
            if slot.is_none() {
                let checked = self.closure_argument(argument, param, None)?;
                *slot = Some(self.coerce(checked, param)?);
            }
        }
        Ok(out.into_iter().flatten().collect())
    }

    fn closure_argument(
        &mut self,
        argument: &syn::Expr,
        param: &Ty,
        bound: Option<WantedClosure>,
    ) -> Checked<Expr> {
        let syn::Expr::Closure(closure) = strip(argument) else {
            return self.expr(argument, Some(param));
        };
        let wanted = bound.or_else(|| match self.infer.shallow(param) {
            Ty::FnPtr(sig) => {
                Some(WantedClosure { kind: crate::ty::ClosureKind::Fn, sig: (*sig).clone() })
            }
            wanted @ Ty::Named("impl Fn" | "impl FnMut" | "impl FnOnce", _) => {
                let Ty::Named(_, arguments) = &wanted else { return None };
                match self.infer.shallow(&arguments[0]) {
                    Ty::DynFn(sig) => {
                        Some(WantedClosure { kind: super::kind_of(&wanted), sig: (*sig).clone() })
                    }
                    _ => None,
                }
            }
            _ => None,
        });
        self.closure(closure, wanted)
    }

    /// `f64::max` where a function is wanted.
    pub(super) fn method_value(
        &mut self,
        candidate: Candidate,
        ty: &Ty,
        span: Span,
    ) -> Checked<Expr> {
        let sig = candidate.signature();
        let mut instance = self.instantiate(sig);
        self.bind_receiver(sig, &mut instance, ty);
        if sig.generics.iter().any(|generic| !generic.bounds.is_empty()) {
            return Err(Diagnostic::unsupported(
                span,
                format!("the method `{}` as a value; wrap it in a closure", candidate.name()),
            ));
        }
        let own = match sig.receiver {
            Some(Receiver::Ref) => Ty::reference(ty.clone()),
            Some(Receiver::Mut) => Ty::Ref(true, Arc::new(ty.clone())),
            _ => ty.clone(),
        };
        let mut params: Vec<Ty> = Vec::new();
        if sig.receiver.is_some() {
            params.push(own);
        }
        params.extend(instance.params.iter().map(|param| self.infer.resolve(param)));
        let ret = self.infer.resolve(&instance.ret);
        let fn_sig = Arc::new(FnSig { params, ret });
        Ok(Expr {
            kind: Kind::Method(candidate),
            ty: Ty::FnItem(super::expr::unique(), fn_sig),
            span,
        })
    }

    pub(super) fn method_call(
        &mut self,
        call: &syn::ExprMethodCall,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let receiver = self.expr(&call.receiver, None)?;
        let name = call.method.to_string();
        let name_span = span_of(call.method.span());
        let site = Site {
            name: name_span,
            whole: between(receiver.span, span_of(call.paren_token.span.close())),
            is_method: true,
        };
        let _ = self.select();
        let ty = self.infer.shallow(&receiver.ty);
        if ty.is_never() {
            return Ok(Expr { ty: Ty::Never, ..receiver });
        }
        match self.infer.var_kind(&ty) {
            Some(VarKind::General) => return Err(self.annotation_needed(receiver.span)),
            Some(kind)
                if !library::is_trait_method(&name, kind)
                    && library::find_method(&ty, &name, &self.infer).is_some() =>
            {
                let text = self.infer.text(&ty);
                return Err(Diagnostic::check(
                    "E0689",
                    name_span,
                    format!("can't call method `{name}` on ambiguous numeric type `{text}`"),
                )
                .help("give the number a type: write `2.0_f64` or annotate the variable"));
            }
            _ => {}
        }
        let receiver = match self.own_method(receiver, &name)? {
            Ok((cell, receiver)) => return self.own_method_call(cell, receiver, &call.args, site),
            Err(receiver) => receiver,
        };
        self.refuse_without_trait(&ty, &name, name_span)?;
        let Some((candidate, own, receiver)) = self.probe(receiver, &name)? else {
            return Err(self.no_method(&ty, &name, name_span));
        };
        self.table_call(
            candidate,
            Some((own, receiver)),
            &call.args,
            call.turbofish.as_ref(),
            site,
            expected,
        )
    }

    /// `clone` and `to_string` stand in the table for every type; not every type has them.
    fn refuse_without_trait(&mut self, ty: &Ty, name: &str, span: Span) -> Checked<()> {
        let resolved = self.infer.resolve(ty);
        let peeled = resolved.peeled();
        let lacks = match name {
            "clone" => !self.field_has(peeled, "Clone"),
            "to_string" => !self.field_has(peeled, "Display"),
            _ => return Ok(()),
        };
        if !lacks || self.infer.is_open(peeled) {
            return Ok(());
        }
        if name == "clone" && matches!(resolved, Ty::Ref(..)) {
            return Err(Diagnostic::unsupported(span, "a clone of a reference"));
        }
        Err(match peeled {
            Ty::Struct(def) => self.no_own_method(def, name, span),
            other => Diagnostic::check(
                "E0599",
                span,
                format!(
                    "the method `{name}` exists for `{}`, but its trait bounds were not satisfied",
                    self.infer.text(other)
                ),
            ),
        })
    }

    /// Finds the method along the receiver's dereferences: (method, its `Self`, the receiver
    /// adjusted to what the method takes).
    fn probe(&mut self, receiver: Expr, name: &str) -> Checked<Option<(Candidate, Ty, Expr)>> {
        let mut place = receiver;
        let mut first = true;
        loop {
            let ty = self.infer.shallow(&place.ty);
            if let Some(row) = self.by_value_reference(&ty, name) {
                return Ok(Some((Candidate::Row(row), ty, place)));
            }
            let generic_here = !matches!(ty, Ty::Ref(..)) || !library::is_universal(name);
            if generic_here && let Some(candidate) = library::find_method(&ty, name, &self.infer) {
                let receiver = self.adjust(place, candidate.signature().receiver, first)?;
                return Ok(Some((candidate, ty, receiver)));
            }
            let span = place.span;
            let (kind, next): (fn(Box<Expr>) -> Kind, Ty) = match &ty {
                Ty::Ref(_, to) => (Kind::Deref, (**to).clone()),
                Ty::Named("Vec", arguments) if matches!(place.kind, Kind::Index(..)) => {
                    (Kind::Deref, Ty::Slice(Arc::new(arguments[0].clone())))
                }
                Ty::Named("Vec", arguments) => {
                    place.ty = Ty::Slice(Arc::new(arguments[0].clone()));
                    first = false;
                    continue;
                }
                // An element keeps its own type: only slices of lists and texts are unsized.
                Ty::Named("String", _) if matches!(place.kind, Kind::Index(..)) => {
                    (Kind::Deref, Ty::Str)
                }
                Ty::Named("String", _) => {
                    place.ty = Ty::Str;
                    first = false;
                    continue;
                }
                Ty::Named("Box", arguments) => {
                    ((|inner| Kind::Field(inner, u32::MAX)), arguments[0].clone())
                }
                _ => return Ok(None),
            };
            place = Expr { kind: kind(Box::new(place)), ty: next, span };
            first = false;
        }
    }

    /// Methods that exist on references themselves.
    fn by_value_reference(&self, ty: &Ty, name: &str) -> Option<&'static library::Row> {
        let Ty::Ref(mutable, to) = ty else { return None };
        let to = self.infer.shallow(to);
        match name {
            "into_iter" => {
                let list = matches!(to, Ty::Named("Vec", _) | Ty::Array(..) | Ty::Slice(_));
                list.then(|| {
                    library::function(if *mutable { "&mut into_iter" } else { "&into_iter" })
                })
                .flatten()
            }
            "max" | "min" | "clamp" if !mutable && matches!(to, Ty::Int(_)) => {
                library::function(match name {
                    "max" => "&max",
                    "min" => "&min",
                    _ => "&clamp",
                })
            }
            _ => None,
        }
    }

    pub(super) fn adjust(
        &mut self,
        place: Expr,
        receiver: Option<Receiver>,
        _first: bool,
    ) -> Checked<Expr> {
        let span = place.span;
        let mutable = match receiver {
            Some(Receiver::Ref) => false,
            Some(Receiver::Mut) => true,
            _ => return Ok(place),
        };
        // `&*r` of a shared reference is `r` itself.
        if !mutable && let Kind::Deref(inner) = place.kind {
            if matches!(self.infer.shallow(&inner.ty), Ty::Ref(false, _)) {
                let ty = Ty::reference(place.ty);
                return Ok(Expr { kind: inner.kind, ty, span });
            }
            let ty = Ty::Ref(mutable, Arc::new(place.ty.clone()));
            let place = Expr { kind: Kind::Deref(inner), ty: place.ty, span };
            return Ok(Expr { kind: Kind::Borrow(mutable, Box::new(place)), ty, span });
        }
        let ty = Ty::Ref(mutable, Arc::new(place.ty.clone()));
        Ok(Expr { kind: Kind::Borrow(mutable, Box::new(place)), ty, span })
    }

    fn no_method(&mut self, ty: &Ty, name: &str, span: Span) -> Box<Diagnostic> {
        let resolved = self.infer.resolve(ty);
        let peeled = resolved.peeled();
        if library::is_known_elsewhere(peeled, self.infer.var_kind(peeled), name) {
            let words = format!("the method `{name}` of `{}`", self.infer.text(peeled));
            return Diagnostic::unsupported(span, words);
        }
        if let Ty::Struct(def) = peeled {
            return self.no_own_method(def, name, span);
        }
        let text = self.infer.text(ty);
        let what = match ty {
            Ty::Named("Array" | "Vec" | "String" | "Jit" | "JitTree" | "JitUpdate" | "Box", _) => {
                "struct"
            }
            Ty::Named("Option", _) => "enum",
            Ty::Ref(..) => "reference",
            Ty::Closure(_) => "closure",
            _ => "type",
        };
        let fault = Diagnostic::check(
            "E0599",
            span,
            format!("no method named `{name}` found for {what} `{text}` in the current scope"),
        );
        let peeled = self.infer.resolve(ty);
        match library::nearest_method(peeled.peeled(), name, &self.infer) {
            Some(near) => fault
                .label(format!("help: there is a method `{near}` with a similar name"))
                .help(format!("write `{near}`")),
            None if is_references_to_arrays(peeled.peeled()) => {
                fault.label(format!("method not found in `{text}`")).help(
                    "the function gets its arguments as an array: write `|[x]|` where it is `|x|`",
                )
            }
            None => fault.label(format!("method not found in `{text}`")),
        }
    }

    /// A call of a table's entry. For methods the receiver is adjusted already.
    fn table_call(
        &mut self,
        candidate: Candidate,
        receiver: Option<(Ty, Expr)>,
        arguments: Arguments<'_>,
        turbofish: Option<&syn::AngleBracketedGenericArguments>,
        site: Site,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let sig = candidate.signature();
        let mut instance = self.instantiate(sig);
        if let Some((own, _)) = &receiver {
            self.bind_receiver(sig, &mut instance, own);
        }
        if let Some(turbofish) = turbofish {
            self.bind_turbofish(sig, &instance, turbofish, site)?;
        }
        if sig.params.len() != arguments.len() {
            return Err(self.wrong_arity(sig.params.len(), arguments.len(), site));
        }
        // `let v: Vec<f64> = …`: an expectation helps closures and empty containers.
        if let Some(expected) = expected
            && matches!(self.infer.shallow(expected), Ty::Named("Vec" | "Option" | "Box", _))
            && matches!(&instance.ret, Ty::Named("Vec" | "Option" | "Box", _))
            && receiver.is_none()
            && arguments.is_empty()
        {
            let _ = self.infer.unify(&instance.ret, expected);
        }
        let args = self.table_arguments(sig, &instance, arguments)?;
        self.bounds_of(sig, &instance, &args, site)?;
        self.select()?;
        let mut all = Vec::with_capacity(args.len() + 1);
        if let Some((_, receiver)) = receiver {
            all.push(receiver);
        }
        all.extend(args);
        let callee = match candidate {
            Candidate::Item(item) => Callee::Surface(item, elements(sig, &instance)),
            Candidate::Row(row) => Callee::Library(row),
        };
        let ty = self.infer.shallow(&instance.ret);
        Ok(Expr { kind: Kind::Call(callee, all), ty, span: site.whole })
    }

    fn instantiate(&mut self, sig: &Signature) -> Instance {
        let variables: Vec<Ty> = sig.generics.iter().map(|_| self.infer.fresh()).collect();
        let params = sig.params.iter().map(|(_, ty)| substitute(ty, &variables)).collect();
        let ret = substitute(&sig.ret, &variables);
        Instance { variables, params, ret }
    }

    /// `Self` of the signature becomes the receiver's type.
    fn bind_receiver(&mut self, sig: &Signature, instance: &mut Instance, own: &Ty) {
        let Some(self_ty) = &sig.receiver_ty else { return };
        let self_ty = substitute(self_ty, &instance.variables);
        let element = match (&self_ty, own) {
            (Ty::Slice(element), Ty::Array(own, _) | Ty::Slice(own)) => {
                Some(((**element).clone(), (**own).clone()))
            }
            (Ty::Slice(element), Ty::Named("Vec", own)) => {
                Some(((**element).clone(), own[0].clone()))
            }
            (
                Ty::Named("Iter" | "Range", element),
                Ty::Named("Range" | "RangeInclusive" | "RangeFrom", own),
            ) => Some((element[0].clone(), own[0].clone())),
            _ => None,
        };
        let _ = match element {
            Some((element, own)) => self.infer.unify(&element, &own),
            None => self.infer.unify(&self_ty, own),
        };
    }

    fn bind_turbofish(
        &mut self,
        sig: &Signature,
        instance: &Instance,
        turbofish: &syn::AngleBracketedGenericArguments,
        site: Site,
    ) -> Checked<()> {
        let mut named: Vec<usize> =
            (0..sig.generics.len()).filter(|index| sig.generics[*index].named).collect();
        if named.is_empty() && !site.is_method {
            named = (0..sig.generics.len().min(1)).collect();
        }
        // Associated types stand last in the table, without bounds: they are never written.
        let least = named.iter().filter(|index| !sig.generics[**index].bounds.is_empty()).count();
        let given = turbofish.args.len();
        if given > named.len() || given < least.max(usize::from(!named.is_empty())) {
            return Err(Diagnostic::check(
                "E0107",
                site.name,
                format!(
                    "takes {} generic argument(s) but {} were supplied",
                    named.len(),
                    turbofish.args.len()
                ),
            ));
        }
        for (argument, index) in turbofish.args.iter().zip(named) {
            let ty = match argument {
                syn::GenericArgument::Type(ty) => self.user_type(ty)?,
                syn::GenericArgument::Const(length) => Ty::Const(self.length_of(length)?),
                _ => continue,
            };
            self.equate(&instance.variables[index], &ty, site.name)?;
        }
        Ok(())
    }

    /// Closures last: the other arguments decide what they are given.
    fn table_arguments(
        &mut self,
        sig: &Signature,
        instance: &Instance,
        arguments: Arguments<'_>,
    ) -> Checked<Vec<Expr>> {
        let mut out: Vec<Option<Expr>> = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            out.push(match strip(argument) {
                syn::Expr::Closure(_) => None,
                _ => Some(self.table_argument(sig, instance, index, argument)?),
            });
        }
        self.select()?;
        for (index, argument) in arguments.iter().enumerate() {
            if out[index].is_some() {
                continue;
            }
            let wanted = self.wanted_closure(sig, instance, index);
            let param = instance.params[index].clone();
            let checked = self.closure_argument(argument, &param, wanted)?;
            out[index] = Some(self.coerce(checked, &param)?);
        }
        Ok(out.into_iter().flatten().collect())
    }

    fn table_argument(
        &mut self,
        sig: &Signature,
        instance: &Instance,
        index: usize,
        argument: &syn::Expr,
    ) -> Checked<Expr> {
        let param = &instance.params[index];
        if !matches!(sig.params[index].1, Ty::Param(_)) {
            return self.expr_of(argument, param);
        }
        let hint = self.infer.shallow(param);
        let hint = if self.infer.var_kind(&hint).is_some() { None } else { Some(hint) };
        let checked = self.expr(argument, hint.as_ref())?;
        self.coerce(checked, param)
    }

    fn wanted_closure(
        &mut self,
        sig: &Signature,
        instance: &Instance,
        index: usize,
    ) -> Option<WantedClosure> {
        let Ty::Param(generic) = sig.params[index].1 else { return None };
        sig.generics[generic as usize].bounds.iter().find_map(|bound| match bound {
            Bound::Callable(kind, bound) => Some(WantedClosure {
                kind: *kind,
                sig: FnSig {
                    params: bound
                        .params
                        .iter()
                        .map(|ty| substitute(ty, &instance.variables))
                        .collect(),
                    ret: substitute(&bound.ret, &instance.variables),
                },
            }),
            _ => None,
        })
    }

    /// Every generic's bounds, on what the arguments made of it.
    fn bounds_of(
        &mut self,
        sig: &Signature,
        instance: &Instance,
        args: &[Expr],
        site: Site,
    ) -> Checked<()> {
        for (index, generic) in sig.generics.iter().enumerate() {
            let ty = instance.variables[index].clone();
            let at = sig
                .params
                .iter()
                .position(|(_, param)| matches!(param, Ty::Param(own) if *own == index as u32))
                .and_then(|position| args.get(position))
                .map_or(site.whole, |arg| arg.span);
            for bound in &generic.bounds {
                match bound {
                    Bound::Callable(kind, bound) => {
                        let want = FnSig {
                            params: bound
                                .params
                                .iter()
                                .map(|ty| substitute(ty, &instance.variables))
                                .collect(),
                            ret: substitute(&bound.ret, &instance.variables),
                        };
                        self.callable_bound(&ty, *kind, &want, at)?;
                    }
                    Bound::Static => {}
                    Bound::Trait(name, arguments) => {
                        let arguments: Vec<Ty> = arguments
                            .iter()
                            .map(|ty| substitute(ty, &instance.variables))
                            .collect();
                        self.require(&ty, name, &arguments, at);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn callable_bound(
        &mut self,
        ty: &Ty,
        kind: crate::ty::ClosureKind,
        want: &FnSig,
        span: Span,
    ) -> Checked<()> {
        let shallow = self.infer.shallow(ty);
        let unsatisfied = |this: &Self| {
            Diagnostic::check(
                "E0277",
                span,
                format!(
                    "expected a `{}{}` closure, found `{}`",
                    kind.name(),
                    want,
                    this.infer.text(&shallow)
                ),
            )
        };
        if library::JITTED.iter().any(|name| shallow.is_named(name)) {
            let wrapped =
                if shallow.is_named("Jit") { "move |a| f(a)" } else { "move |p, a| f(p, a)" };
            return Err(unsatisfied(self).help(format!(
                "a jitted function is wrapped before another transform: `{wrapped}`"
            )));
        }
        let Some(have) = self.callable_sig(&shallow) else { return Err(unsatisfied(self)) };
        if have.params.len() != want.params.len() {
            return Err(Diagnostic::check(
                "E0593",
                span,
                format!(
                    "function is expected to take {} argument(s), but it takes {} argument(s)",
                    want.params.len(),
                    have.params.len()
                ),
            ));
        }
        for (have, want) in have.params.iter().zip(&want.params) {
            if self.infer.unify(have, want).is_err() {
                return Err(Diagnostic::check(
                    "E0631",
                    span,
                    "type mismatch in function arguments",
                )
                .label(format!(
                    "expected `{}`, found `{}`",
                    self.infer.text(want),
                    self.infer.text(have)
                )));
            }
        }
        if self.infer.unify(&have.ret, &want.ret).is_err() {
            return Err(Diagnostic::check(
                "E0271",
                span,
                format!(
                    "expected this to return `{}`, but it returns `{}`",
                    self.infer.text(&want.ret),
                    self.infer.text(&have.ret)
                ),
            ));
        }
        Ok(())
    }
}

/// The types of the `Element` parameters, which the dynamic entry wants as values.
fn elements(sig: &Signature, instance: &Instance) -> Vec<Ty> {
    let is_element = |bound: &Bound| matches!(bound, Bound::Trait("Element", _));
    sig.generics
        .iter()
        .zip(&instance.variables)
        .filter(|(generic, _)| generic.named && generic.bounds.iter().any(is_element))
        .map(|(_, ty)| ty.clone())
        .collect()
}

/// Parentheses do not make an expression another one.
pub(super) fn strip(expr: &syn::Expr) -> &syn::Expr {
    match expr {
        syn::Expr::Paren(inner) => strip(&inner.expr),
        syn::Expr::Group(inner) => strip(&inner.expr),
        other => other,
    }
}
