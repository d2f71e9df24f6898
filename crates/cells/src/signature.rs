//! Signatures written as Rust text (the surface table, the library table) as types.

use crate::diagnostic::Diagnostic;
use crate::place::span_of;
use crate::ty::{ClosureKind, FloatKind, FnSig, IntKind, Ty};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex};
use syn::spanned::Spanned;

/// What a generic parameter must satisfy.
#[derive(Clone, Debug)]
pub enum Bound {
    /// `Fn(A) -> B`, with whether `'static` stands beside it.
    Callable(ClosureKind, FnSig),
    Static,
    Trait(&'static str, Vec<Ty>),
}

#[derive(Clone, Debug)]
pub struct Generic {
    pub name: String,
    pub bounds: Vec<Bound>,
    /// May stand in a turbofish: not an `impl Trait` parameter.
    pub named: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    Value,
    Ref,
    Mut,
}

#[derive(Clone, Debug)]
pub struct Signature {
    pub generics: Vec<Generic>,
    pub receiver: Option<Receiver>,
    /// The receiver's type, in terms of the generics.
    pub receiver_ty: Option<Ty>,
    pub params: Vec<(String, Ty)>,
    pub ret: Ty,
}

/// Keeps a name for the rest of the process; the names are those of the tables and few.
pub fn intern(name: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Default::default);
    let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

/// How the reader of a type deals with what depends on where the type stands.
pub trait TypeScope {
    /// A path of one segment with its arguments, other than Rust's own types.
    ///
    /// # Errors
    /// An unknown name.
    fn named(&mut self, name: &syn::Ident, arguments: Vec<Ty>) -> Result<Ty, Box<Diagnostic>>;
    /// `_`.
    ///
    /// # Errors
    /// Where inference is not allowed.
    fn hole(&mut self, span: crate::ir::Span) -> Result<Ty, Box<Diagnostic>>;
    /// The length in `[T; n]`.
    ///
    /// # Errors
    /// Not a constant that the tier can evaluate.
    fn length(&mut self, length: &syn::Expr) -> Result<Ty, Box<Diagnostic>>;
    /// `impl Fn(…)` in argument position.
    ///
    /// # Errors
    /// Where `impl` is not allowed or not supported.
    fn implementor(&mut self, ty: &syn::TypeImplTrait) -> Result<Ty, Box<Diagnostic>>;
}

/// Rust's spelling to a type.
///
/// # Errors
/// An unknown name, or a type outside of the subset.
pub fn read_type(ty: &syn::Type, scope: &mut dyn TypeScope) -> Result<Ty, Box<Diagnostic>> {
    let span = span_of(ty.span());
    match ty {
        syn::Type::Paren(inner) => read_type(&inner.elem, scope),
        syn::Type::Group(inner) => read_type(&inner.elem, scope),
        syn::Type::Never(_) => Ok(Ty::Never),
        syn::Type::Infer(_) => scope.hole(span),
        syn::Type::Tuple(tuple) => {
            let parts: Result<Vec<Ty>, _> =
                tuple.elems.iter().map(|part| read_type(part, scope)).collect();
            Ok(Ty::Tuple(parts?.into()))
        }
        syn::Type::Array(array) => {
            let element = read_type(&array.elem, scope)?;
            Ok(Ty::Array(Arc::new(element), Arc::new(scope.length(&array.len)?)))
        }
        syn::Type::Slice(slice) => Ok(Ty::Slice(Arc::new(read_type(&slice.elem, scope)?))),
        syn::Type::Reference(reference) => {
            let to = read_type(&reference.elem, scope)?;
            Ok(Ty::Ref(reference.mutability.is_some(), Arc::new(to)))
        }
        syn::Type::FnPtr(pointer) => {
            let params: Result<Vec<Ty>, _> =
                pointer.inputs.iter().map(|input| read_type(&input.ty, scope)).collect();
            let ret = read_return(&pointer.output, scope)?;
            Ok(Ty::FnPtr(Arc::new(FnSig { params: params?, ret })))
        }
        syn::Type::TraitObject(object) => match callable_bound(&object.bounds, scope)? {
            Some((_, sig)) => Ok(Ty::DynFn(Arc::new(sig))),
            None => Err(Diagnostic::unsupported(span, "trait objects other than `dyn Fn`")),
        },
        syn::Type::ImplTrait(implementor) => scope.implementor(implementor),
        syn::Type::Path(path) if path.qself.is_none() => read_path(&path.path, scope),
        _ => Err(Diagnostic::unsupported(span, "this kind of type")),
    }
}

pub fn read_return(
    ret: &syn::ReturnType,
    scope: &mut dyn TypeScope,
) -> Result<Ty, Box<Diagnostic>> {
    match ret {
        syn::ReturnType::Default => Ok(Ty::unit()),
        syn::ReturnType::Type(_, ty) => read_type(ty, scope),
    }
}

fn read_path(path: &syn::Path, scope: &mut dyn TypeScope) -> Result<Ty, Box<Diagnostic>> {
    let span = span_of(path.span());
    let Some(last) = path.segments.last() else {
        return Err(Diagnostic::unsupported(span, "this type"));
    };
    let name = last.ident.to_string();
    let mut arguments = Vec::new();
    if let syn::PathArguments::AngleBracketed(angle) = &last.arguments {
        for argument in &angle.args {
            match argument {
                syn::GenericArgument::Type(ty) => arguments.push(read_type(ty, scope)?),
                syn::GenericArgument::Const(length) => arguments.push(scope.length(length)?),
                syn::GenericArgument::Lifetime(_) => {}
                _ => return Err(Diagnostic::unsupported(span, "this generic argument")),
            }
        }
    }
    if let Some(ty) = builtin_type(&name)
        && arguments.is_empty()
    {
        return Ok(ty);
    }
    let want = match name.as_str() {
        "String" => 0,
        "Vec" | "Option" | "Box" | "Range" | "RangeInclusive" | "Iter" => 1,
        _ => return scope.named(&last.ident, arguments),
    };
    if arguments.len() != want {
        let words = format!("`{name}` takes {want} generic argument(s), {} given", arguments.len());
        return Err(Diagnostic::check("E0107", span, words));
    }
    Ok(Ty::Named(intern(&name), arguments.into()))
}

/// Types without parameters that Rust itself has.
pub fn builtin_type(name: &str) -> Option<Ty> {
    Some(match name {
        "bool" => Ty::Bool,
        "char" => Ty::Char,
        "str" => Ty::Str,
        "f32" => Ty::Float(FloatKind::F32),
        "f64" => Ty::Float(FloatKind::F64),
        _ => Ty::Int(IntKind::parse(name)?),
    })
}

type Bounds = syn::punctuated::Punctuated<syn::TypeParamBound, syn::Token![+]>;

/// The `Fn(…) -> …` among bounds.
pub fn callable_bound(
    bounds: &Bounds,
    scope: &mut dyn TypeScope,
) -> Result<Option<(ClosureKind, FnSig)>, Box<Diagnostic>> {
    for bound in bounds {
        let syn::TypeParamBound::Trait(bound) = bound else { continue };
        let Some(last) = bound.path.segments.last() else { continue };
        let kind = match last.ident.to_string().as_str() {
            "Fn" => ClosureKind::Fn,
            "FnMut" => ClosureKind::FnMut,
            "FnOnce" => ClosureKind::FnOnce,
            _ => continue,
        };
        if let syn::PathArguments::Parenthesized(arguments) = &last.arguments {
            let params: Result<Vec<Ty>, _> =
                arguments.inputs.iter().map(|input| read_type(&input.ty, scope)).collect();
            let ret = read_return(&arguments.output, scope)?;
            return Ok(Some((kind, FnSig { params: params?, ret })));
        }
    }
    Ok(None)
}

/// Reads a table's signature. `self_ty` is the receiver's type as Rust text, with its parameters:
/// `Vec<T>`, `Jit<N, Out>`; `parameters` names those (`const N` for lengths).
pub fn read_signature(
    text: &str,
    self_ty: Option<&str>,
    parameters: &[&str],
) -> Result<Signature, String> {
    let sig: syn::Signature = syn::parse_str(text).map_err(|error| format!("{text}: {error}"))?;
    let mut reader = TableScope { generics: Vec::new(), self_ty: None };
    for parameter in parameters {
        let name = parameter.strip_prefix("const ").unwrap_or(parameter);
        reader.generics.push(Generic { name: name.into(), bounds: Vec::new(), named: false });
    }
    let convert = |error: Box<Diagnostic>| format!("{text}: {}", error.message);
    if let Some(self_ty) = self_ty {
        let parsed: syn::Type =
            syn::parse_str(self_ty).map_err(|error| format!("{self_ty}: {error}"))?;
        reader.self_ty = Some(read_type(&parsed, &mut reader).map_err(convert)?);
    }
    reader.read(&sig).map_err(convert)
}

struct TableScope {
    generics: Vec<Generic>,
    self_ty: Option<Ty>,
}

impl TableScope {
    fn read(&mut self, sig: &syn::Signature) -> Result<Signature, Box<Diagnostic>> {
        self.declare(&sig.generics);
        self.bind(&sig.generics)?;
        let mut receiver = None;
        let mut params = Vec::new();
        for input in &sig.inputs {
            match input {
                syn::FnArg::Receiver(own) => receiver = Some(receiver_of(own)),
                syn::FnArg::Typed(typed) => {
                    let name = match &*typed.pat {
                        syn::Pat::Ident(ident) => ident.ident.to_string(),
                        _ => "_".into(),
                    };
                    params.push((name, read_type(&typed.ty, self)?));
                }
            }
        }
        let ret = read_return(&sig.output, self)?;
        Ok(Signature {
            generics: std::mem::take(&mut self.generics),
            receiver,
            receiver_ty: self.self_ty.clone(),
            params,
            ret,
        })
    }

    fn declare(&mut self, generics: &syn::Generics) {
        for parameter in &generics.params {
            let name = match parameter {
                syn::GenericParam::Type(parameter) => parameter.ident.to_string(),
                syn::GenericParam::Const(parameter) => parameter.ident.to_string(),
                syn::GenericParam::Lifetime(_) => continue,
            };
            self.generics.push(Generic { name, bounds: Vec::new(), named: true });
        }
    }

    fn bind(&mut self, generics: &syn::Generics) -> Result<(), Box<Diagnostic>> {
        for parameter in &generics.params {
            if let syn::GenericParam::Type(parameter) = parameter {
                let bounds = self.bounds(&parameter.bounds)?;
                self.add_bounds(&parameter.ident.to_string(), bounds);
            }
        }
        for predicate in generics.where_clause.iter().flat_map(|clause| &clause.predicates) {
            if let syn::WherePredicate::Type(predicate) = predicate
                && let syn::Type::Path(path) = &predicate.bounded_ty
                && let Some(ident) = path.path.get_ident()
            {
                let bounds = self.bounds(&predicate.bounds)?;
                self.add_bounds(&ident.to_string(), bounds);
            }
        }
        Ok(())
    }

    fn add_bounds(&mut self, name: &str, bounds: Vec<Bound>) {
        if let Some(generic) = self.generics.iter_mut().find(|generic| generic.name == name) {
            generic.bounds.extend(bounds);
        }
    }

    fn bounds(&mut self, bounds: &Bounds) -> Result<Vec<Bound>, Box<Diagnostic>> {
        let mut found = Vec::new();
        if let Some((kind, sig)) = callable_bound(bounds, self)? {
            found.push(Bound::Callable(kind, sig));
        }
        for bound in bounds {
            match bound {
                syn::TypeParamBound::Lifetime(lifetime) if lifetime.ident == "static" => {
                    found.push(Bound::Static);
                }
                syn::TypeParamBound::Trait(bound) => {
                    let Some(last) = bound.path.segments.last() else { continue };
                    let name = last.ident.to_string();
                    if matches!(name.as_str(), "Fn" | "FnMut" | "FnOnce" | "Send" | "Sync") {
                        continue;
                    }
                    let mut arguments = Vec::new();
                    if let syn::PathArguments::AngleBracketed(angle) = &last.arguments {
                        for argument in &angle.args {
                            match argument {
                                syn::GenericArgument::Type(ty) => {
                                    arguments.push(read_type(ty, self)?);
                                }
                                syn::GenericArgument::Const(length) => {
                                    arguments.push(self.length(length)?);
                                }
                                _ => {}
                            }
                        }
                    }
                    found.push(Bound::Trait(intern(&name), arguments));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn generic(&self, name: &str) -> Option<Ty> {
        let index = self.generics.iter().position(|generic| generic.name == name)?;
        Some(Ty::Param(index as u32))
    }
}

fn receiver_of(receiver: &syn::Receiver) -> Receiver {
    match &receiver.kind {
        syn::ReceiverKind::Value => Receiver::Value,
        syn::ReceiverKind::Reference(_, _, Some(_)) => Receiver::Mut,
        syn::ReceiverKind::Reference(..) => Receiver::Ref,
        _ => Receiver::Value,
    }
}

impl TypeScope for TableScope {
    fn named(&mut self, name: &syn::Ident, arguments: Vec<Ty>) -> Result<Ty, Box<Diagnostic>> {
        let text = name.to_string();
        if text == "Self"
            && let Some(ty) = &self.self_ty
        {
            return Ok(ty.clone());
        }
        if arguments.is_empty()
            && let Some(ty) = self.generic(&text)
        {
            return Ok(ty);
        }
        if text == "Boxed"
            && let [length, ret] = arguments.as_slice()
        {
            return Ok(boxed(length.clone(), ret.clone()));
        }
        Ok(Ty::Named(intern(&text), arguments.into()))
    }

    fn hole(&mut self, span: crate::ir::Span) -> Result<Ty, Box<Diagnostic>> {
        Err(Diagnostic::check("E0121", span, "the placeholder `_` is not allowed here"))
    }

    fn length(&mut self, length: &syn::Expr) -> Result<Ty, Box<Diagnostic>> {
        match length {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(int), .. }) => {
                Ok(Ty::Const(int.base10_parse().unwrap_or(0)))
            }
            syn::Expr::Path(path) => {
                let name = path.path.get_ident().map(ToString::to_string).unwrap_or_default();
                Ok(self.generic(&name).unwrap_or(Ty::Const(0)))
            }
            other => Err(Diagnostic::unsupported(span_of(other.span()), "this length")),
        }
    }

    fn implementor(&mut self, ty: &syn::TypeImplTrait) -> Result<Ty, Box<Diagnostic>> {
        let bounds = self.bounds(&ty.bounds)?;
        let index = self.generics.len() as u32;
        let name = format!("impl#{index}");
        self.generics.push(Generic { name, bounds, named: false });
        Ok(Ty::Param(index))
    }
}

/// `Box<dyn Fn([&Array; N]) -> Out + Send + Sync>`.
pub fn boxed(length: Ty, ret: Ty) -> Ty {
    let argument = Ty::Array(Arc::new(Ty::reference(Ty::array())), Arc::new(length));
    let sig = FnSig { params: vec![argument], ret };
    Ty::generic("Box", Ty::DynFn(Arc::new(sig)))
}
