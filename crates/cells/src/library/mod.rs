//! Everything a cell may call by name: the prelude's surface and the part of Rust's own library
//! that the tier has. Rust's part is a table of signatures as Rust text, each with its function.

mod iterators;
mod known;
mod lists;
mod numbers;
mod options;
mod results;
mod texts;

pub use known::is_known_elsewhere;

use crate::code::Meta;
use crate::interrupt::Fallible;
use crate::signature::{Signature, intern, read_signature};
use crate::ty::{FloatKind, Infer, IntKind, Ty, VarKind};
use crate::value::Value;
use crate::vm::Vm;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock};
use vramlab_array::ir::DType;
use vramlab_array::surface::{self, Item, Place};

/// What runs an entry: the arguments are taken from the list, the receiver first.
pub type Run = fn(&mut Vm<'_>, &mut [Value], &Meta) -> Fallible<Value>;

/// One function or method of Rust's library.
pub struct Row {
    /// The receiver: a type as Rust text, or a class of types (`int`, `float`, `*`). Empty for
    /// functions without one.
    class: &'static str,
    /// Functions are called by this path.
    path: &'static str,
    text: &'static str,
    pub run: Run,
    /// May add arrays to its receiver, which then get names.
    pub grows: bool,
    signature: OnceLock<Signature>,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}", self.class, self.name())
    }
}

const fn method(class: &'static str, text: &'static str, run: Run) -> Row {
    Row { class, path: "", text, run, grows: false, signature: OnceLock::new() }
}

const fn grows(class: &'static str, text: &'static str, run: Run) -> Row {
    Row { class, path: "", text, run, grows: true, signature: OnceLock::new() }
}

/// A function; `class` gives the type whose parameters its signature names.
const fn free(path: &'static str, class: &'static str, text: &'static str, run: Run) -> Row {
    Row { class, path, text, run, grows: false, signature: OnceLock::new() }
}

impl Row {
    pub fn name(&self) -> &'static str {
        name_in(self.text)
    }

    pub fn text(&self) -> &'static str {
        self.text
    }

    pub fn signature(&self) -> &Signature {
        self.signature.get_or_init(|| {
            let (self_ty, parameters) = class_parameters(self.class);
            read_signature(self.text, self_ty, parameters)
                .unwrap_or_else(|error| panic!("the library table does not parse: {error}"))
        })
    }
}

fn name_in(text: &'static str) -> &'static str {
    let rest = text.strip_prefix("fn ").unwrap_or(text);
    rest.split(['(', '<']).next().unwrap_or(rest)
}

/// The receiver as a type, and the parameters that this type brings.
fn class_parameters(class: &'static str) -> (Option<&'static str>, &'static [&'static str]) {
    match class {
        "" => (None, &[]),
        "int" | "float" | "*" => (Some("Own"), &["Own"]),
        "Vec<T>" | "[T]" | "Option<T>" | "Option<&T>" | "Iter<T>" | "Iter<&T>" | "Range<T>"
        | "Box<T>" => (Some(class), &["T"]),
        "[T; N]" => (Some(class), &["T", "const N"]),
        "Result<T, E>" => (Some(class), &["T", "E"]),
        "Jit" => (Some("Jit<N, Out>"), &["const N", "Out"]),
        "JitTree" => (Some("JitTree<P, N, Out>"), &["P", "const N", "Out"]),
        "JitUpdate" => (Some("JitUpdate<P, N, Out>"), &["P", "const N", "Out"]),
        other => (Some(other), &[]),
    }
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut rows = general();
    rows.extend(lists::rows());
    rows.extend(texts::rows());
    rows.extend(options::rows());
    rows.extend(results::rows());
    rows.extend(iterators::rows());
    rows.extend(numbers::rows());
    rows
});

static METHODS: LazyLock<HashMap<&'static str, Vec<&'static Row>>> = LazyLock::new(|| {
    let mut methods: HashMap<&'static str, Vec<&'static Row>> = HashMap::new();
    for row in ROWS.iter().filter(|row| row.path.is_empty()) {
        methods.entry(row.name()).or_default().push(row);
    }
    methods
});

static FUNCTIONS: LazyLock<HashMap<&'static str, &'static Row>> = LazyLock::new(|| {
    ROWS.iter().filter(|row| !row.path.is_empty()).map(|row| (row.path, row)).collect()
});

/// Something callable, from either table.
#[derive(Clone, Copy, Debug)]
pub enum Candidate {
    Item(&'static Item),
    Row(&'static Row),
}

impl Candidate {
    pub fn signature(self) -> &'static Signature {
        match self {
            Candidate::Item(item) => item_signature(item),
            Candidate::Row(row) => row.signature(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Candidate::Item(item) => item.name,
            Candidate::Row(row) => row.name(),
        }
    }

    /// The signature as Rust text.
    pub fn text(self) -> &'static str {
        match self {
            Candidate::Item(item) => item.signature,
            Candidate::Row(row) => row.text,
        }
    }
}

/// The surface's signatures, each read when it is first wanted.
fn item_signature(item: &'static Item) -> &'static Signature {
    static READ: LazyLock<Mutex<HashMap<usize, &'static Signature>>> =
        LazyLock::new(Default::default);
    let key = std::ptr::from_ref(item) as usize;
    let mut read = READ.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    read.entry(key).or_insert_with(|| {
        let class = match item.place {
            Place::Method(name) => name,
            Place::Function | Place::Constant => "",
        };
        let (self_ty, parameters) = class_parameters(class);
        let signature = read_signature(item.signature, self_ty, parameters)
            .unwrap_or_else(|error| panic!("the surface table does not parse: {error}"));
        Box::leak(Box::new(signature))
    })
}

pub fn function(path: &str) -> Option<&'static Row> {
    FUNCTIONS.get(path).copied()
}

pub fn surface_function(name: &str) -> Option<&'static Item> {
    surface::lookup(Place::Function, name)
}

pub fn surface_constant(name: &str) -> Option<&'static Item> {
    surface::lookup(Place::Constant, name)
}

/// `const F32: DType` → `DType`.
pub fn constant_type(item: &'static Item) -> Ty {
    let text = item.signature.rsplit(':').next().unwrap_or("").trim();
    crate::signature::builtin_type(text).unwrap_or_else(|| Ty::named(intern(text)))
}

/// The method of a type, references not looked through.
pub fn method_of(ty: &Ty, name: &str, kind: Option<VarKind>) -> Option<Candidate> {
    if let Ty::Named(own, _) = ty
        && let Some(item) = surface::lookup(Place::Method(own), name)
    {
        return Some(Candidate::Item(item));
    }
    let rows = METHODS.get(name)?;
    rows.iter().find(|row| is_of(row.class, ty, kind)).map(|row| Candidate::Row(row))
}

pub fn find_method(ty: &Ty, name: &str, infer: &Infer) -> Option<Candidate> {
    method_of(&infer.resolve(ty), name, infer.var_kind(ty))
}

fn is_of(class: &str, ty: &Ty, kind: Option<VarKind>) -> bool {
    match class {
        "*" => true,
        "int" => matches!(ty, Ty::Int(_)) || kind == Some(VarKind::Int),
        "float" => matches!(ty, Ty::Float(_)) || kind == Some(VarKind::Float),
        "bool" => matches!(ty, Ty::Bool),
        "char" => matches!(ty, Ty::Char),
        "str" => matches!(ty, Ty::Str),
        "&str" => matches!(ty, Ty::Ref(false, to) if **to == Ty::Str),
        "[T]" => matches!(ty, Ty::Slice(_) | Ty::Array(..)),
        "[T; N]" => matches!(ty, Ty::Array(..)),
        "Iter<T>" => {
            matches!(ty, Ty::Named("Iter" | "Range" | "RangeInclusive" | "RangeFrom", _))
        }
        "Iter<&T>" | "Option<&T>" => match ty {
            Ty::Named(own @ ("Iter" | "Option"), inner) => {
                class.starts_with(own) && matches!(inner[0], Ty::Ref(false, _))
            }
            _ => false,
        },
        "Range<T>" => matches!(ty, Ty::Named("Range" | "RangeInclusive", _)),
        other => {
            let name = other.split('<').next().unwrap_or(other);
            ty.is_named(name)
        }
    }
}

/// Methods that every type has; on a reference they mean what it refers to.
pub fn is_universal(name: &str) -> bool {
    METHODS.get(name).is_some_and(|rows| rows.iter().any(|row| row.class == "*"))
}

/// Methods that come from traits, which need no settled numeric type.
pub fn is_trait_method(name: &str, kind: VarKind) -> bool {
    match name {
        "into" | "clone" | "to_string" | "to_owned" | "partial_cmp" | "eq" | "ne" => true,
        "cmp" | "max" | "min" | "clamp" => kind == VarKind::Int,
        _ => false,
    }
}

pub fn has_method(ty: &Ty, name: &str) -> bool {
    method_of(ty, name, None).is_some()
}

/// Every method of a type, its dereferences included; for completion.
pub fn methods(ty: &Ty) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut ty = ty.peeled().clone();
    loop {
        if let Ty::Named(own, _) = &ty {
            out.extend(
                surface::items()
                    .filter(|item| item.place == Place::Method(own))
                    .map(Candidate::Item),
            );
        }
        for row in ROWS.iter().filter(|row| row.path.is_empty()) {
            let taken = out.iter().any(|own| own.name() == row.name());
            if !taken && is_of(row.class, &ty, None) {
                out.push(Candidate::Row(row));
            }
        }
        ty = match ty {
            Ty::Named("Vec", arguments) => Ty::Slice(std::sync::Arc::new(arguments[0].clone())),
            Ty::Named("String", _) => Ty::Str,
            Ty::Named("Box", arguments) => arguments[0].clone(),
            _ => break,
        };
    }
    out.sort_by_key(|candidate| candidate.name());
    out
}

pub fn nearest_method(ty: &Ty, name: &str, _infer: &Infer) -> Option<String> {
    let methods = methods(ty);
    nearest(name, methods.iter().map(|candidate| candidate.name()))
}

/// The nearest spelling, when there is one near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .filter(|candidate| *candidate != name)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(name, candidate);
            (distance, name.len().abs_diff(candidate.len()), candidate)
        })
        .filter(|(distance, ..)| *distance <= limit)
        .min()
        .map(|(.., candidate)| candidate.to_string())
}

pub fn function_names() -> impl Iterator<Item = &'static str> {
    let own = ROWS
        .iter()
        .map(|row| row.path)
        .filter(|path| !path.is_empty() && !path.contains("::") && !path.starts_with('&'));
    own.chain(surface::items().filter(|item| item.place == Place::Function).map(|item| item.name))
}

pub fn constant_names() -> impl Iterator<Item = &'static str> {
    surface::items().filter(|item| item.place == Place::Constant).map(|item| item.name)
}

/// The types of the prelude, by name.
const NOMINAL: &[&str] = &[
    "Array",
    "DType",
    "Policy",
    "MemoryStats",
    "MemoryAnalysis",
    "ParseIntError",
    "ParseFloatError",
];

/// Jitted functions: of arrays, of a borrowed tree, of a tree by value.
pub const JITTED: [&str; 3] = ["Jit", "JitTree", "JitUpdate"];

pub fn type_names() -> impl Iterator<Item = &'static str> {
    let own = ["Vec", "String", "Option", "Box", "bool", "char", "str", "f32", "f64"];
    own.into_iter()
        .chain(JITTED)
        .chain(NOMINAL.iter().copied())
        .chain(IntKind::ALL.into_iter().map(IntKind::name))
}

pub fn is_known_type(name: &str) -> bool {
    type_names().any(|own| own == name)
}

/// A type of the prelude with its arguments.
pub fn nominal(name: &str, arguments: &[Ty]) -> Option<Ty> {
    match (name, arguments) {
        ("Result", [value, error]) => {
            Some(Ty::Named("Result", [value.clone(), error.clone()].into()))
        }
        ("Jit", [length, out]) => Some(Ty::Named("Jit", [length.clone(), out.clone()].into())),
        ("JitTree" | "JitUpdate", [tree, length, out]) => {
            let name = if name == "JitTree" { "JitTree" } else { "JitUpdate" };
            Some(Ty::Named(name, [tree.clone(), length.clone(), out.clone()].into()))
        }
        (name, []) => {
            let known = NOMINAL.iter().find(|own| **own == name)?;
            Some(Ty::named(known))
        }
        _ => None,
    }
}

/// The type before `::` in a call.
pub fn owner_type(name: &str) -> Option<Ty> {
    crate::signature::builtin_type(name)
        .or_else(|| nominal(name, &[]))
        .or_else(|| (name == "String").then(Ty::string))
}

/// A field of a struct of the prelude.
pub fn record_field(record: &str, field: &str) -> Option<(&'static str, Ty)> {
    let record = surface::RECORDS.iter().find(|own| own.name == record)?;
    let (name, ty) = record.fields.iter().find(|(own, _)| *own == field)?;
    Some((name, crate::signature::builtin_type(ty)?))
}

/// `f64::consts::PI`, `i32::MAX`, `std::f64::consts::PI`.
pub fn associated_constant(segments: &[String]) -> Option<(Ty, Value)> {
    let mut segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let from_std = segments.first().is_some_and(|first| matches!(*first, "std" | "core"));
    if from_std {
        segments.remove(0);
    }
    match segments.as_slice() {
        [kind @ ("f32" | "f64"), "consts", name] if from_std => {
            let value = numbers::float_constant(name)?;
            let kind = if *kind == "f32" { FloatKind::F32 } else { FloatKind::F64 };
            Some((Ty::Float(kind), Value::Float(kind.round(value))))
        }
        [owner, name] => {
            if let Some(kind) = IntKind::parse(owner) {
                let value = match *name {
                    "MAX" => kind.max(),
                    "MIN" => kind.min(),
                    "BITS" => return Some((Ty::Int(IntKind::U32), Value::Int(kind.bits().into()))),
                    _ => return None,
                };
                return Some((Ty::Int(kind), Value::Int(value)));
            }
            let kind = match *owner {
                "f32" => FloatKind::F32,
                "f64" => FloatKind::F64,
                _ => return None,
            };
            Some((Ty::Float(kind), Value::Float(numbers::float_limit(kind, name)?)))
        }
        _ => None,
    }
}

/// The element type that a Rust type stands for, as the prelude takes it.
pub fn element_value(ty: &Ty) -> Value {
    Value::DType(match ty {
        Ty::Bool => DType::Bool,
        Ty::Float(FloatKind::F32) => DType::F32,
        Ty::Float(FloatKind::F64) => DType::F64,
        Ty::Int(IntKind::I64) => DType::I64,
        Ty::Int(IntKind::U8) => DType::U8,
        Ty::Int(IntKind::U32) => DType::U32,
        _ => DType::I32,
    })
}

/// What is left where a value was taken.
fn take(args: &mut [Value], index: usize) -> Value {
    args[index].take()
}

fn integer(vm: &Vm<'_>, value: &Value) -> Fallible<i128> {
    match vm.peel(value)? {
        Value::Int(value) => Ok(*value),
        _ => Err(crate::interrupt::internal("an integer")),
    }
}

fn size(vm: &Vm<'_>, value: &Value) -> Fallible<usize> {
    usize::try_from(integer(vm, value)?).map_err(|_| crate::interrupt::internal("a count"))
}

fn text<'v>(vm: &'v Vm<'_>, value: &'v Value) -> Fallible<&'v str> {
    match vm.peel(value)? {
        Value::Text(text) => Ok(text),
        _ => Err(crate::interrupt::internal("a text")),
    }
}

fn count(value: usize) -> Value {
    Value::Int(value as i128)
}

fn ordering(order: std::cmp::Ordering) -> Value {
    Value::Int(order as i128)
}

fn general() -> Vec<Row> {
    vec![
        free("drop", "", "fn drop<T>(value: T)", |_, args, _| {
            drop(take(args, 0));
            Ok(Value::Unit)
        }),
        free("std::mem::drop", "", "fn drop<T>(value: T)", |_, args, _| {
            drop(take(args, 0));
            Ok(Value::Unit)
        }),
        free("std::mem::swap", "", "fn swap<T>(a: &mut T, b: &mut T)", |vm, args, _| {
            let a = vm.get_mut(&args[0])?.take();
            let b = std::mem::replace(vm.get_mut(&args[1])?, a);
            *vm.get_mut(&args[0])? = b;
            Ok(Value::Unit)
        }),
        free(
            "std::mem::replace",
            "",
            "fn replace<T>(place: &mut T, value: T) -> T",
            |vm, args, _| {
                let value = take(args, 1);
                Ok(std::mem::replace(vm.get_mut(&args[0])?, value))
            },
        ),
        free("std::mem::take", "", "fn take<T>(place: &mut T) -> T", |vm, args, meta| {
            let empty = default_of(&meta.ret);
            Ok(std::mem::replace(vm.get_mut(&args[0])?, empty))
        }),
        free("Box::new", "Box<T>", "fn new(value: T) -> Box<T>", |_, args, _| Ok(take(args, 0))),
        free("display", "", "fn display<T: Display>(value: &T)", |vm, args, meta| {
            let ty = meta.args[0].peeled();
            let value = if ty.is_named("Array") {
                vm.borrowed_dyn(&args[0])?
            } else {
                let mut out = String::new();
                let layout = crate::format::Layout::plain();
                crate::show::value(vm, &mut out, &args[0], ty, &layout)?;
                vramlab_array::surface::Dyn::Text(out.into())
            };
            vm.host.display(&value);
            Ok(Value::Unit)
        }),
        free("input", "", "fn input(prompt: &str) -> String", |vm, args, _| {
            let prompt = text(vm, &args[0])?.to_string();
            Ok(Value::text(vm.host.input(&prompt)?))
        }),
        free("sleep", "", "fn sleep(seconds: f64)", |vm, args, _| {
            let Value::Float(seconds) = args[0] else {
                return Err(crate::interrupt::internal("a float"));
            };
            sleep(vm, seconds)?;
            Ok(Value::Unit)
        }),
        method("*", "fn clone(&self) -> Own", |vm, args, _| vm.clone_of(&args[0])),
        method("*", "fn to_string(&self) -> String", |vm, args, meta| {
            let mut out = String::new();
            let layout = crate::format::Layout::plain();
            crate::show::value(vm, &mut out, &args[0], meta.args[0].peeled(), &layout)?;
            Ok(Value::text(out))
        }),
    ]
}

/// An interrupt is noticed within this time.
const NAP: std::time::Duration = std::time::Duration::from_millis(10);

fn sleep(vm: &mut Vm<'_>, seconds: f64) -> Fallible<()> {
    let Ok(length) = std::time::Duration::try_from_secs_f64(seconds) else {
        return Err(crate::interrupt::panic(format!("cannot sleep for {seconds} seconds")));
    };
    let start = std::time::Instant::now();
    loop {
        vm.check_interrupt()?;
        let Some(left) = length.checked_sub(start.elapsed()) else { return Ok(()) };
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(NAP));
    }
}

/// `Default::default()` of a type.
pub fn default_of(ty: &Ty) -> Value {
    match ty {
        Ty::Int(_) => Value::Int(0),
        Ty::Float(_) => Value::Float(0.0),
        Ty::Bool => Value::Bool(false),
        Ty::Char => Value::Char('\0'),
        Ty::Named("String", _) | Ty::Str => Value::text(""),
        Ty::Named("Vec", _) => Value::List(Vec::new()),
        Ty::Named("Option", _) => Value::none(),
        Ty::Tuple(parts) if parts.is_empty() => Value::Unit,
        Ty::Tuple(parts) => Value::Tuple(parts.iter().map(default_of).collect()),
        Ty::Array(element, length) => match **length {
            Ty::Const(length) => Value::List((0..length).map(|_| default_of(element)).collect()),
            _ => Value::Unit,
        },
        Ty::Struct(def) => {
            Value::Struct(def.names.clone(), def.fields().iter().map(default_of).collect())
        }
        Ty::Named("Box", inner) => default_of(&inner[0]),
        _ => Value::Unit,
    }
}
