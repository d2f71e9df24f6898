//! Types, and their inference: unification with general, integer, float and length variables.

use crate::structs::StructDef;
use std::fmt;
use std::sync::{Arc, OnceLock};

pub type Types = Arc<[Ty]>;

/// Rust's integer types but `u128`, whose upper half the interpreter's wide integers cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntKind {
    I8,
    I16,
    I32,
    I64,
    I128,
    Isize,
    U8,
    U16,
    U32,
    U64,
    Usize,
}

impl IntKind {
    pub const ALL: [IntKind; 11] = [
        IntKind::I8,
        IntKind::I16,
        IntKind::I32,
        IntKind::I64,
        IntKind::I128,
        IntKind::Isize,
        IntKind::U8,
        IntKind::U16,
        IntKind::U32,
        IntKind::U64,
        IntKind::Usize,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            IntKind::I8 => "i8",
            IntKind::I16 => "i16",
            IntKind::I32 => "i32",
            IntKind::I64 => "i64",
            IntKind::I128 => "i128",
            IntKind::Isize => "isize",
            IntKind::U8 => "u8",
            IntKind::U16 => "u16",
            IntKind::U32 => "u32",
            IntKind::U64 => "u64",
            IntKind::Usize => "usize",
        }
    }

    pub const fn bits(self) -> u32 {
        match self {
            IntKind::I8 | IntKind::U8 => 8,
            IntKind::I16 | IntKind::U16 => 16,
            IntKind::I32 | IntKind::U32 => 32,
            IntKind::I128 => 128,
            _ => 64,
        }
    }

    pub const fn is_signed(self) -> bool {
        matches!(
            self,
            IntKind::I8
                | IntKind::I16
                | IntKind::I32
                | IntKind::I64
                | IntKind::I128
                | IntKind::Isize
        )
    }

    pub const fn min(self) -> i128 {
        if self.is_signed() { i128::MIN >> (128 - self.bits()) } else { 0 }
    }

    pub const fn max(self) -> i128 {
        let bits = if self.is_signed() { self.bits() - 1 } else { self.bits() };
        (i128::MAX) >> (127 - bits)
    }

    pub const fn holds(self, value: i128) -> bool {
        self.min() <= value && value <= self.max()
    }

    /// The value modulo 2^bits, as `as` and `wrapping_*` give it.
    pub const fn wrap(self, value: i128) -> i128 {
        let shift = 128 - self.bits();
        if self.is_signed() {
            (value << shift) >> shift
        } else {
            (((value as u128) << shift) >> shift) as i128
        }
    }

    pub fn parse(name: &str) -> Option<IntKind> {
        IntKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatKind {
    F32,
    F64,
}

impl FloatKind {
    pub const fn name(self) -> &'static str {
        match self {
            FloatKind::F32 => "f32",
            FloatKind::F64 => "f64",
        }
    }

    /// Rounds to the type's precision; every float is kept as `f64`.
    pub fn round(self, value: f64) -> f64 {
        match self {
            FloatKind::F32 => f64::from(value as f32),
            FloatKind::F64 => value,
        }
    }
}

#[derive(Clone, Debug)]
pub struct FnSig {
    pub params: Vec<Ty>,
    pub ret: Ty,
}

/// How a closure may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClosureKind {
    Fn,
    FnMut,
    FnOnce,
}

impl ClosureKind {
    pub const fn name(self) -> &'static str {
        match self {
            ClosureKind::Fn => "Fn",
            ClosureKind::FnMut => "FnMut",
            ClosureKind::FnOnce => "FnOnce",
        }
    }
}

/// What the body of a closure decides about its type; known once its code is built.
#[derive(Clone, Copy, Debug)]
pub struct ClosureFacts {
    pub kind: ClosureKind,
    /// Holds references: to captured variables, or captured ones.
    pub borrows: bool,
    pub copy: bool,
    pub drops: bool,
}

#[derive(Clone, Debug)]
pub struct ClosureTy {
    pub id: u64,
    pub sig: FnSig,
    pub facts: Arc<OnceLock<ClosureFacts>>,
}

#[derive(Clone, Debug)]
pub enum Ty {
    Never,
    Bool,
    Char,
    Str,
    Int(IntKind),
    Float(FloatKind),
    /// The unit type is the empty one.
    Tuple(Types),
    /// Element type and length (`Const` or a variable).
    Array(Arc<Ty>, Arc<Ty>),
    Slice(Arc<Ty>),
    /// `true`: `&mut`.
    Ref(bool, Arc<Ty>),
    /// `String`, `Vec<T>`, `Option<T>`, `Range<T>`, `Box<T>`, and the prelude's own types.
    Named(&'static str, Types),
    /// A struct of a cell.
    Struct(Arc<StructDef>),
    Const(u64),
    /// A `fn` item: its number, unique in the session.
    FnItem(u64, Arc<FnSig>),
    FnPtr(Arc<FnSig>),
    DynFn(Arc<FnSig>),
    Closure(Arc<ClosureTy>),
    Var(u32),
    /// A generic parameter of a signature, by position.
    Param(u32),
}

impl Ty {
    pub fn unit() -> Ty {
        Ty::Tuple(Arc::from([]))
    }

    pub fn named(name: &'static str) -> Ty {
        Ty::Named(name, Arc::from([]))
    }

    pub fn generic(name: &'static str, argument: Ty) -> Ty {
        Ty::Named(name, Arc::from([argument]))
    }

    pub fn reference(to: Ty) -> Ty {
        Ty::Ref(false, Arc::new(to))
    }

    pub fn array_of(element: Ty, length: u64) -> Ty {
        Ty::Array(Arc::new(element), Arc::new(Ty::Const(length)))
    }

    pub fn usize() -> Ty {
        Ty::Int(IntKind::Usize)
    }

    pub fn i32() -> Ty {
        Ty::Int(IntKind::I32)
    }

    pub fn f64() -> Ty {
        Ty::Float(FloatKind::F64)
    }

    pub fn array() -> Ty {
        Ty::named("Array")
    }

    pub fn string() -> Ty {
        Ty::named("String")
    }

    pub fn is_unit(&self) -> bool {
        matches!(self, Ty::Tuple(parts) if parts.is_empty())
    }

    pub fn is_never(&self) -> bool {
        matches!(self, Ty::Never)
    }

    pub fn is_named(&self, name: &str) -> bool {
        matches!(self, Ty::Named(own, _) if *own == name)
    }

    pub fn is_numeric(&self) -> bool {
        matches!(self, Ty::Int(_) | Ty::Float(_))
    }

    pub fn is_scalar(&self) -> bool {
        matches!(self, Ty::Int(_) | Ty::Float(_) | Ty::Bool | Ty::Char)
    }

    /// The innermost type behind any references.
    pub fn peeled(&self) -> &Ty {
        match self {
            Ty::Ref(_, to) => to.peeled(),
            other => other,
        }
    }

    pub fn is_copy(&self) -> bool {
        match self {
            Ty::Never
            | Ty::Bool
            | Ty::Char
            | Ty::Int(_)
            | Ty::Float(_)
            | Ty::Ref(false, _)
            | Ty::Const(_)
            | Ty::FnItem(..)
            | Ty::FnPtr(_)
            | Ty::Str
            | Ty::Slice(_) => true,
            Ty::Tuple(parts) => parts.iter().all(Ty::is_copy),
            Ty::Array(element, _) => element.is_copy(),
            Ty::Named("Option", arguments) => arguments.iter().all(Ty::is_copy),
            Ty::Named("DType", _) => true,
            Ty::Struct(def) => def.derives.copy,
            Ty::Closure(closure) => closure.facts.get().is_some_and(|facts| facts.copy),
            Ty::Ref(true, _) | Ty::Named(..) | Ty::DynFn(_) | Ty::Var(_) | Ty::Param(_) => false,
        }
    }

    /// Ending its life does something one could see or that frees memory.
    pub fn needs_drop(&self) -> bool {
        match self {
            Ty::Tuple(parts) => parts.iter().any(Ty::needs_drop),
            Ty::Array(element, _) => element.needs_drop(),
            Ty::Named("Option", arguments) => arguments.iter().any(Ty::needs_drop),
            Ty::Named("DType" | "Range" | "RangeInclusive" | "RangeFull", _) => false,
            Ty::Named(..) => true,
            Ty::Struct(def) => def.fields().iter().any(Ty::needs_drop),
            Ty::Closure(closure) => closure.facts.get().is_none_or(|facts| facts.drops),
            _ => false,
        }
    }

    /// Values of the type may hold references, so loans flow through them.
    pub fn holds_references(&self) -> bool {
        match self {
            Ty::Ref(..) => true,
            Ty::Named("Iter", _) | Ty::DynFn(_) => true,
            Ty::Tuple(parts) | Ty::Named(_, parts) => parts.iter().any(Ty::holds_references),
            Ty::Array(element, _) | Ty::Slice(element) => element.holds_references(),
            Ty::Struct(def) => def.fields().iter().any(Ty::holds_references),
            Ty::Closure(closure) => closure.facts.get().is_some_and(|facts| facts.borrows),
            _ => false,
        }
    }

    /// Values of the type are told to the session by name: arrays, functions that are called by the
    /// name of the variable which holds them, and closures, which may own what they captured.
    pub fn is_told(&self) -> bool {
        match self {
            Ty::Named("Jit" | "JitTree" | "JitUpdate", _) | Ty::Closure(_) => true,
            Ty::Struct(def) => def.fields().iter().any(Ty::is_told),
            other => other.holds_arrays(),
        }
    }

    /// Values of the type may hold device arrays.
    pub fn holds_arrays(&self) -> bool {
        match self {
            Ty::Named("Array", _) => true,
            Ty::Tuple(parts) | Ty::Named("Vec" | "Option" | "Box", parts) => {
                parts.iter().any(Ty::holds_arrays)
            }
            Ty::Array(element, _) => element.holds_arrays(),
            Ty::Struct(def) => def.fields().iter().any(Ty::holds_arrays),
            _ => false,
        }
    }
}

impl PartialEq for Ty {
    fn eq(&self, other: &Ty) -> bool {
        match (self, other) {
            (Ty::Never, Ty::Never)
            | (Ty::Bool, Ty::Bool)
            | (Ty::Char, Ty::Char)
            | (Ty::Str, Ty::Str) => true,
            (Ty::Int(a), Ty::Int(b)) => a == b,
            (Ty::Float(a), Ty::Float(b)) => a == b,
            (Ty::Tuple(a), Ty::Tuple(b)) => a == b,
            (Ty::Array(a, n), Ty::Array(b, m)) => a == b && n == m,
            (Ty::Slice(a), Ty::Slice(b)) => a == b,
            (Ty::Ref(p, a), Ty::Ref(q, b)) => p == q && a == b,
            (Ty::Named(p, a), Ty::Named(q, b)) => p == q && a == b,
            (Ty::Struct(a), Ty::Struct(b)) => a.id == b.id,
            (Ty::Const(a), Ty::Const(b)) => a == b,
            (Ty::FnItem(a, _), Ty::FnItem(b, _)) => a == b,
            (Ty::FnPtr(a), Ty::FnPtr(b)) | (Ty::DynFn(a), Ty::DynFn(b)) => {
                a.params == b.params && a.ret == b.ret
            }
            (Ty::Closure(a), Ty::Closure(b)) => a.id == b.id,
            (Ty::Var(a), Ty::Var(b)) | (Ty::Param(a), Ty::Param(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for FnSig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        list(f, &self.params)?;
        f.write_str(")")?;
        if self.ret.is_unit() { Ok(()) } else { write!(f, " -> {}", self.ret) }
    }
}

fn list(f: &mut fmt::Formatter<'_>, types: &[Ty]) -> fmt::Result {
    for (index, ty) in types.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{ty}")?;
    }
    Ok(())
}

/// As rustc spells types in its messages.
impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Never => f.write_str("!"),
            Ty::Bool => f.write_str("bool"),
            Ty::Char => f.write_str("char"),
            Ty::Str => f.write_str("str"),
            Ty::Int(kind) => f.write_str(kind.name()),
            Ty::Float(kind) => f.write_str(kind.name()),
            Ty::Tuple(parts) => {
                f.write_str("(")?;
                list(f, parts)?;
                f.write_str(if parts.len() == 1 { ",)" } else { ")" })
            }
            Ty::Array(element, length) => write!(f, "[{element}; {length}]"),
            Ty::Slice(element) => write!(f, "[{element}]"),
            Ty::Ref(false, to) => write!(f, "&{to}"),
            Ty::Ref(true, to) => write!(f, "&mut {to}"),
            Ty::Named("Iter", arguments) => write!(f, "impl Iterator<Item = {}>", arguments[0]),
            Ty::Named(name @ ("impl Fn" | "impl FnMut" | "impl FnOnce"), arguments) => {
                match &arguments[0] {
                    Ty::DynFn(sig) => write!(f, "{name}{sig}"),
                    other => write!(f, "{other}"),
                }
            }
            Ty::Named(name, arguments) => {
                f.write_str(name)?;
                if arguments.is_empty() {
                    return Ok(());
                }
                f.write_str("<")?;
                list(f, arguments)?;
                f.write_str(">")
            }
            Ty::Struct(def) => f.write_str(def.name()),
            Ty::Const(length) => write!(f, "{length}"),
            Ty::FnItem(_, sig) | Ty::FnPtr(sig) => write!(f, "fn{sig}"),
            Ty::DynFn(sig) => write!(f, "dyn Fn{sig} + Send + Sync"),
            Ty::Closure(closure) => write!(f, "impl Fn{}", closure.sig),
            Ty::Var(_) => f.write_str("_"),
            Ty::Param(index) => write!(f, "T{index}"),
        }
    }
}

/// What a variable may still become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarKind {
    General,
    Int,
    Float,
}

#[derive(Clone, Debug)]
enum Slot {
    Free(VarKind),
    Bound(Ty),
}

/// The inference table of one cell.
#[derive(Debug, Default)]
pub struct Infer {
    slots: Vec<Slot>,
}

impl Infer {
    pub fn fresh(&mut self) -> Ty {
        self.fresh_of(VarKind::General)
    }

    pub fn fresh_of(&mut self, kind: VarKind) -> Ty {
        self.slots.push(Slot::Free(kind));
        Ty::Var(self.slots.len() as u32 - 1)
    }

    pub fn var_kind(&self, ty: &Ty) -> Option<VarKind> {
        match self.shallow(ty) {
            Ty::Var(index) => match self.slots[index as usize] {
                Slot::Free(kind) => Some(kind),
                Slot::Bound(_) => None,
            },
            _ => None,
        }
    }

    /// The type with its outermost variable looked up.
    pub fn shallow(&self, ty: &Ty) -> Ty {
        let mut ty = ty;
        while let Ty::Var(index) = ty {
            match &self.slots[*index as usize] {
                Slot::Bound(bound) => ty = bound,
                Slot::Free(_) => break,
            }
        }
        ty.clone()
    }

    /// The type with every bound variable replaced.
    pub fn resolve(&self, ty: &Ty) -> Ty {
        match ty {
            Ty::Var(index) => match &self.slots[*index as usize] {
                Slot::Bound(bound) => self.resolve(bound),
                Slot::Free(_) => ty.clone(),
            },
            Ty::Tuple(parts) if parts.is_empty() => ty.clone(),
            Ty::Named(_, parts) if parts.is_empty() => ty.clone(),
            Ty::Tuple(parts) => Ty::Tuple(parts.iter().map(|part| self.resolve(part)).collect()),
            Ty::Named(name, parts) => {
                Ty::Named(name, parts.iter().map(|part| self.resolve(part)).collect())
            }
            Ty::Array(element, length) => {
                Ty::Array(Arc::new(self.resolve(element)), Arc::new(self.resolve(length)))
            }
            Ty::Slice(element) => Ty::Slice(Arc::new(self.resolve(element))),
            Ty::Ref(mutable, to) => Ty::Ref(*mutable, Arc::new(self.resolve(to))),
            Ty::FnItem(id, sig) => Ty::FnItem(*id, Arc::new(self.resolve_sig(sig))),
            Ty::FnPtr(sig) => Ty::FnPtr(Arc::new(self.resolve_sig(sig))),
            Ty::DynFn(sig) => Ty::DynFn(Arc::new(self.resolve_sig(sig))),
            Ty::Closure(closure) => Ty::Closure(Arc::new(ClosureTy {
                id: closure.id,
                sig: self.resolve_sig(&closure.sig),
                facts: closure.facts.clone(),
            })),
            _ => ty.clone(),
        }
    }

    fn resolve_sig(&self, sig: &FnSig) -> FnSig {
        FnSig {
            params: sig.params.iter().map(|param| self.resolve(param)).collect(),
            ret: self.resolve(&sig.ret),
        }
    }

    /// Whether a variable is left anywhere in the type.
    pub fn is_open(&self, ty: &Ty) -> bool {
        fn open(ty: &Ty) -> bool {
            match ty {
                Ty::Var(_) => true,
                Ty::Tuple(parts) | Ty::Named(_, parts) => parts.iter().any(open),
                Ty::Array(element, length) => open(element) || open(length),
                Ty::Slice(to) | Ty::Ref(_, to) => open(to),
                Ty::FnPtr(sig) | Ty::DynFn(sig) => sig.params.iter().any(open) || open(&sig.ret),
                Ty::Closure(closure) => {
                    closure.sig.params.iter().any(open) || open(&closure.sig.ret)
                }
                _ => false,
            }
        }
        open(&self.resolve(ty))
    }

    pub fn bind_default(&mut self, ty: &Ty) -> bool {
        let default = match self.var_kind(ty) {
            Some(VarKind::Int) => Ty::i32(),
            Some(VarKind::Float) => Ty::f64(),
            _ => return false,
        };
        self.unify(ty, &default).is_ok()
    }

    /// The type for a message: `{integer}` and `{float}` as rustc has them.
    pub fn text(&self, ty: &Ty) -> String {
        let resolved = self.resolve(ty);
        self.mark(&resolved).to_string()
    }

    fn mark(&self, ty: &Ty) -> Ty {
        match ty {
            Ty::Var(_) => match self.var_kind(ty) {
                Some(VarKind::Int) => Ty::named("{integer}"),
                Some(VarKind::Float) => Ty::named("{float}"),
                _ => ty.clone(),
            },
            Ty::Tuple(parts) => Ty::Tuple(parts.iter().map(|part| self.mark(part)).collect()),
            Ty::Named(name, parts) => {
                Ty::Named(name, parts.iter().map(|part| self.mark(part)).collect())
            }
            Ty::Array(element, length) => Ty::Array(Arc::new(self.mark(element)), length.clone()),
            Ty::Slice(element) => Ty::Slice(Arc::new(self.mark(element))),
            Ty::Ref(mutable, to) => Ty::Ref(*mutable, Arc::new(self.mark(to))),
            _ => ty.clone(),
        }
    }

    /// Makes the two types equal, or leaves them as far as they got.
    ///
    /// # Errors
    /// They cannot be equal.
    pub fn unify(&mut self, a: &Ty, b: &Ty) -> Result<(), ()> {
        let (a, b) = (self.shallow(a), self.shallow(b));
        match (&a, &b) {
            (Ty::Var(p), Ty::Var(q)) if p == q => Ok(()),
            (Ty::Var(index), _) => self.bind(*index, &b),
            (_, Ty::Var(index)) => self.bind(*index, &a),
            (Ty::Tuple(p), Ty::Tuple(q)) => self.unify_all(p, q),
            (Ty::Named(p, a), Ty::Named(q, b)) if p == q => self.unify_all(a, b),
            (Ty::Array(p, n), Ty::Array(q, m)) => {
                self.unify(p, q)?;
                self.unify(n, m)
            }
            (Ty::Slice(p), Ty::Slice(q)) => self.unify(p, q),
            (Ty::Ref(m, p), Ty::Ref(n, q)) if m == n => self.unify(p, q),
            (Ty::FnPtr(p), Ty::FnPtr(q)) | (Ty::DynFn(p), Ty::DynFn(q)) => self.unify_sig(p, q),
            _ if a == b => Ok(()),
            _ => Err(()),
        }
    }

    fn unify_all(&mut self, a: &[Ty], b: &[Ty]) -> Result<(), ()> {
        if a.len() != b.len() {
            return Err(());
        }
        for (a, b) in a.iter().zip(b) {
            self.unify(a, b)?;
        }
        Ok(())
    }

    pub fn unify_sig(&mut self, a: &FnSig, b: &FnSig) -> Result<(), ()> {
        self.unify_all(&a.params, &b.params)?;
        self.unify(&a.ret, &b.ret)
    }

    fn bind(&mut self, index: u32, ty: &Ty) -> Result<(), ()> {
        let Slot::Free(kind) = self.slots[index as usize] else {
            unreachable!("shallow returned a bound variable")
        };
        match (kind, ty) {
            (_, Ty::Var(other)) => {
                let Slot::Free(their) = self.slots[*other as usize] else {
                    unreachable!("shallow returned a bound variable")
                };
                match (kind, their) {
                    (VarKind::Int, VarKind::Float) | (VarKind::Float, VarKind::Int) => Err(()),
                    (VarKind::General, _) => self.set(index, ty),
                    _ => self.set(*other, &Ty::Var(index)),
                }
            }
            (VarKind::General, _) if self.occurs(index, ty) => Err(()),
            (VarKind::General, _) | (VarKind::Int, Ty::Int(_)) | (VarKind::Float, Ty::Float(_)) => {
                self.set(index, ty)
            }
            _ => Err(()),
        }
    }

    fn set(&mut self, index: u32, ty: &Ty) -> Result<(), ()> {
        self.slots[index as usize] = Slot::Bound(ty.clone());
        Ok(())
    }

    fn occurs(&self, index: u32, ty: &Ty) -> bool {
        match ty {
            Ty::Var(other) => match &self.slots[*other as usize] {
                Slot::Bound(bound) => self.occurs(index, bound),
                Slot::Free(_) => *other == index,
            },
            Ty::Tuple(parts) | Ty::Named(_, parts) => {
                parts.iter().any(|part| self.occurs(index, part))
            }
            Ty::Array(element, length) => self.occurs(index, element) || self.occurs(index, length),
            Ty::Slice(to) | Ty::Ref(_, to) => self.occurs(index, to),
            _ => false,
        }
    }
}

/// A signature's type with its generic parameters replaced.
pub fn substitute(ty: &Ty, arguments: &[Ty]) -> Ty {
    let one = |ty: &Ty| substitute(ty, arguments);
    let sig = |sig: &FnSig| {
        Arc::new(FnSig { params: sig.params.iter().map(one).collect(), ret: one(&sig.ret) })
    };
    match ty {
        Ty::Param(index) => arguments[*index as usize].clone(),
        Ty::Tuple(parts) => Ty::Tuple(parts.iter().map(one).collect()),
        Ty::Named(name, parts) => Ty::Named(name, parts.iter().map(one).collect()),
        Ty::Array(element, length) => Ty::Array(Arc::new(one(element)), Arc::new(one(length))),
        Ty::Slice(element) => Ty::Slice(Arc::new(one(element))),
        Ty::Ref(mutable, to) => Ty::Ref(*mutable, Arc::new(one(to))),
        Ty::FnPtr(inner) => Ty::FnPtr(sig(inner)),
        Ty::DynFn(inner) => Ty::DynFn(sig(inner)),
        _ => ty.clone(),
    }
}
