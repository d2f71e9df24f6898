//! The surface table: every name a cell may use, once, with its Rust signature as text, its words
//! and a dynamic entry point. The typed functions of this crate and the instant tier both go
//! through the same cores, so that they cannot drift apart; a test compiles the signatures.

use crate::Array;
use crate::array_surface;
use crate::elementwise::{binary, unary};
use crate::elementwise_surface as elementwise;
use crate::reduce_surface as reductions;
use crate::structure::StructNames;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};
use vramlab_ir::{DType, Fault, FaultKind};

/// A value of the instant tier, and the common currency of the dynamic entry points.
#[derive(Debug, Default)]
pub enum Dyn {
    #[default]
    Unit,
    Bool(bool),
    /// Every integer type is kept wide; the static type knows which one it is.
    Int(i128),
    Float(f64),
    Char(char),
    Text(Arc<str>),
    DType(DType),
    /// An array by value: passing it moves it.
    Array(Array),
    /// `&array`: made with [`Array::alias`], so that it is not a holder of its own.
    Borrowed(Array),
    /// `&tree`: what a function that borrows a tree is called with. Its arrays are made with
    /// [`Array::alias`].
    Reference(Box<Dyn>),
    /// `[T; N]` and `Vec<T>`; the static type knows which one it is.
    List(Vec<Dyn>),
    Tuple(Vec<Dyn>),
    /// `a..b`, `a..=b`, `..`, …: bounds as written.
    Range {
        start: Option<i128>,
        end: Option<i128>,
        inclusive: bool,
    },
    Option(Option<Box<Dyn>>),
    /// A closure, `fn` item, jitted or transformed function.
    Function(Arc<dyn Callable>),
    /// A struct of the prelude by its fields: `memory_stats()`, `memory_analysis()`.
    Record {
        name: &'static str,
        fields: Vec<(&'static str, Dyn)>,
    },
    /// A struct of a cell: its fields in the order of declaration.
    Struct {
        names: Arc<StructNames>,
        fields: Vec<Dyn>,
    },
}

/// A clone of an array is a holder of its own, a clone of a borrow is another borrow.
impl Clone for Dyn {
    fn clone(&self) -> Dyn {
        match self {
            Dyn::Unit => Dyn::Unit,
            Dyn::Bool(value) => Dyn::Bool(*value),
            Dyn::Int(value) => Dyn::Int(*value),
            Dyn::Float(value) => Dyn::Float(*value),
            Dyn::Char(value) => Dyn::Char(*value),
            Dyn::Text(text) => Dyn::Text(Arc::clone(text)),
            Dyn::DType(dtype) => Dyn::DType(*dtype),
            Dyn::Array(array) => Dyn::Array(array.clone()),
            Dyn::Borrowed(array) => Dyn::Borrowed(array.alias()),
            Dyn::Reference(tree) => Dyn::Reference(Box::new(tree.alias())),
            Dyn::List(items) => Dyn::List(items.clone()),
            Dyn::Tuple(items) => Dyn::Tuple(items.clone()),
            Dyn::Range { start, end, inclusive } => {
                Dyn::Range { start: *start, end: *end, inclusive: *inclusive }
            }
            Dyn::Option(value) => Dyn::Option(value.clone()),
            Dyn::Function(function) => Dyn::Function(Arc::clone(function)),
            Dyn::Record { name, fields } => Dyn::Record { name, fields: fields.clone() },
            Dyn::Struct { names, fields } => {
                Dyn::Struct { names: Arc::clone(names), fields: fields.clone() }
            }
        }
    }
}

impl Dyn {
    /// The same value without claims of its own: what may stand in for it while a call that takes
    /// it runs, to give it back when the call fails.
    pub fn alias(&self) -> Dyn {
        match self {
            Dyn::Array(array) => Dyn::Array(array.alias()),
            Dyn::List(items) => Dyn::List(items.iter().map(Dyn::alias).collect()),
            Dyn::Tuple(items) => Dyn::Tuple(items.iter().map(Dyn::alias).collect()),
            Dyn::Option(Some(value)) => Dyn::Option(Some(Box::new(value.alias()))),
            Dyn::Struct { names, fields } => Dyn::Struct {
                names: Arc::clone(names),
                fields: fields.iter().map(Dyn::alias).collect(),
            },
            other => other.clone(),
        }
    }

    /// What it is, for faults.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Dyn::Unit => "()",
            Dyn::Bool(_) => "a bool",
            Dyn::Int(_) => "an integer",
            Dyn::Float(_) => "a float",
            Dyn::Char(_) => "a char",
            Dyn::Text(_) => "a string",
            Dyn::DType(_) => "an element type",
            Dyn::Array(_) | Dyn::Borrowed(_) => "an array",
            Dyn::Reference(_) => "a reference",
            Dyn::List(_) => "a list",
            Dyn::Tuple(_) => "a tuple",
            Dyn::Range { .. } => "a range",
            Dyn::Option(_) => "an option",
            Dyn::Function(_) => "a function",
            Dyn::Record { name, .. } => name,
            Dyn::Struct { .. } => "a struct",
        }
    }
}

/// Something a cell can call with arguments by position.
pub trait Callable: Send + Sync + fmt::Debug {
    /// # Errors
    /// A fault of the body; panics of the user's code are faults of kind `Panic`.
    fn call(&self, arguments: Vec<Dyn>) -> Result<Dyn, Fault>;

    /// The arrays that it owns because it captured them by value.
    fn captured(&self) -> Vec<Array> {
        Vec::new()
    }

    /// For downcasting to what a method needs (`Jit` for `memory_analysis`).
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Function, or method of a type of the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Function,
    /// Method of `Array`, `Jit`, `MemoryStats`, …: the receiver type's name.
    Method(&'static str),
    /// A constant: `F32`, `PI`.
    Constant,
}

/// One name.
pub struct Item {
    pub name: &'static str,
    pub place: Place,
    /// As rustc reads it, bounds included: `fn softmax(x: impl Operand, axis: i32) -> Array`,
    /// `fn jit<const N: usize, Out: Tree>(f: impl Fn([&Array; N]) -> Out) -> Jit<N, Out>`.
    /// Of a constant: `const F32: DType`.
    pub signature: &'static str,
    pub doc: &'static str,
    /// A cell that runs.
    pub example: &'static str,
    /// `arguments[0]` is the receiver for methods. A type parameter bound by `Element`
    /// (`item_as::<i32>()`) comes as `Dyn::DType`: behind the receiver, or first where there is none.
    pub call: fn(Vec<Dyn>) -> Result<Dyn, Fault>,
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.signature)
    }
}

/// Every name, family by family.
pub fn items() -> impl Iterator<Item = &'static Item> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

static FAMILIES: &[&[Item]] = &[
    crate::creation::ITEMS,
    crate::creation::CONSTANTS,
    crate::prelude_items::INSPECTION,
    crate::prelude_items::TRANSFORMS,
    crate::control_items::CONTROL,
    crate::gradient_items::GRADIENTS,
    crate::gradient_items::CHECKPOINTS,
    crate::gradient_items::CHECKPOINT_POLICIES,
    crate::tree_items::TREES,
    crate::tree_items::JIT_TREE,
    crate::tree_items::JIT_UPDATE,
    crate::training_items::TRAINING,
    crate::prelude_items::DEVICE,
    elementwise::one::ITEMS,
    elementwise::arithmetic::ITEMS,
    elementwise::two::ITEMS,
    elementwise::bits::ITEMS,
    elementwise::comparison::ITEMS,
    elementwise::others::ITEMS,
    reductions::sum_forms::ITEMS,
    reductions::prod_forms::ITEMS,
    reductions::max_forms::ITEMS,
    reductions::min_forms::ITEMS,
    reductions::any_forms::ITEMS,
    reductions::all_forms::ITEMS,
    reductions::mean_forms::ITEMS,
    reductions::var_forms::ITEMS,
    reductions::std_forms::ITEMS,
    reductions::norm_forms::ITEMS,
    reductions::logsumexp_forms::ITEMS,
    reductions::positions::ITEMS,
    array_surface::layout::ITEMS,
    array_surface::joins::ITEMS,
    array_surface::products::ITEMS,
    array_surface::composites::ITEMS,
];

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Item>>> = LazyLock::new(|| {
    let mut names: HashMap<&'static str, Vec<&'static Item>> = HashMap::new();
    items().for_each(|item| names.entry(item.name).or_default().push(item));
    names
});

/// The item of that name in that place.
pub fn lookup(place: Place, name: &str) -> Option<&'static Item> {
    BY_NAME.get(name)?.iter().copied().find(|item| item.place == place)
}

/// Every item of that name: function and methods.
pub fn named(name: &str) -> &'static [&'static Item] {
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}

/// A struct of the prelude whose fields a cell may read; all of them are `Copy`.
pub struct Record {
    pub name: &'static str,
    /// (field, Rust type)
    pub fields: &'static [(&'static str, &'static str)],
}

/// The structs of the prelude.
pub static RECORDS: &[Record] = &[
    Record {
        name: "MemoryStats",
        fields: &[
            ("bytes_in_use", "u64"),
            ("peak_bytes_in_use", "u64"),
            ("bytes_limit", "u64"),
            ("largest_free_block_bytes", "u64"),
            ("pool_bytes", "u64"),
            ("num_allocs", "u64"),
            ("num_frees", "u64"),
            ("requested_bytes", "u64"),
            ("fragmentation", "f64"),
            ("driver_allocs", "u64"),
            ("driver_frees", "u64"),
            ("device_bytes", "u64"),
            ("live_arrays", "u64"),
        ],
    },
    Record {
        name: "MemoryAnalysis",
        fields: &[
            ("argument_size_in_bytes", "u64"),
            ("output_size_in_bytes", "u64"),
            ("alias_size_in_bytes", "u64"),
            ("temp_size_in_bytes", "u64"),
            ("generated_code_size_in_bytes", "u64"),
            ("peak_memory_in_bytes", "u64"),
            ("host_temp_size_in_bytes", "u64"),
            ("host_scratch_bytes", "u64"),
        ],
    },
];

/// Which Rust types satisfy the bounds that signatures name. `_` is any length or type that the
/// inner bound allows.
pub static BOUNDS: &[(&str, &[&str])] = &[
    ("Operand", &["Array", "&Array", "f64", "i32"]),
    (
        "IntoShape",
        &[
            "()",
            "i32",
            "usize",
            "[i32; _]",
            "[usize; _]",
            "Vec<i32>",
            "Vec<usize>",
            "&[i32]",
            "&[usize]",
            "&IntoShape",
        ],
    ),
    ("Extent", &["i32", "usize"]),
    ("Axes", &["[i32; _]", "Vec<i32>", "&[i32]"]),
    (
        "AxisIndex",
        &[
            "i32",
            "usize",
            "Range<i32>",
            "Range<usize>",
            "RangeInclusive<i32>",
            "RangeInclusive<usize>",
            "RangeFrom<i32>",
            "RangeFrom<usize>",
            "RangeTo<i32>",
            "RangeTo<usize>",
            "RangeToInclusive<i32>",
            "RangeToInclusive<usize>",
            "RangeFull",
        ],
    ),
    ("Indices", &["AxisIndex", "(AxisIndex, ...)"]),
    ("Padding", &["[(i32, i32); _]", "Vec<(i32, i32)>"]),
    ("Interval", &["i32", "usize", "Range<i32>", "Range<usize>", "RangeInclusive<i32>"]),
    ("Into<Number>", &["f64", "i32", "bool"]),
    (
        "Arrays",
        &[
            "[Array; _]",
            "[&Array; _]",
            "&[Array; _]",
            "&[&Array; _]",
            "&[Array]",
            "&[&Array]",
            "Vec<Array>",
            "Vec<&Array>",
            "&Vec<Array>",
            "&Vec<&Array>",
        ],
    ),
    ("Starts", &["[Operand; _]", "&[Operand; _]", "&[Operand]", "Vec<Operand>", "&Vec<Operand>"]),
    (
        "Nested",
        &[
            "f64",
            "f32",
            "i32",
            "bool",
            "[Nested; _]",
            "Vec<Nested>",
            "&[Nested]",
            "&[Nested; _]",
            "&Vec<Nested>",
        ],
    ),
    ("Element", &["f32", "f64", "i32", "i64", "u8", "u32", "bool"]),
    ("Tree", &["Array", "()", "(Tree, ...)", "[Tree; _]", "Vec<Tree>"]),
    (
        "Arguments<N>",
        &["[Array; N]", "[&Array; N]", "(Array or &Array, ...)", "Vec<Array>", "Vec<&Array>"],
    ),
];

/// Rust's operators on arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// `a + b` where at least one is an array and the other an array or a number (`f64`, `i32`).
///
/// # Errors
/// The op's fault.
pub fn operator(operator: Operator, a: &Dyn, b: &Dyn) -> Result<Dyn, Fault> {
    let entry = match operator {
        Operator::Add => &vramlab_ops::ADD,
        Operator::Sub => &vramlab_ops::SUB,
        Operator::Mul => &vramlab_ops::MUL,
        Operator::Div => &vramlab_ops::DIV,
        Operator::Rem => &vramlab_ops::REM,
    };
    binary(entry, input(entry.name, a)?, input(entry.name, b)?).map(Dyn::Array)
}

/// `-a`.
///
/// # Errors
/// The op's fault.
pub fn negate(a: &Dyn) -> Result<Dyn, Fault> {
    unary(&vramlab_ops::NEG, input("neg", a)?).map(Dyn::Array)
}

fn input<'a>(name: &str, value: &'a Dyn) -> Result<crate::operand::Input<'a>, Fault> {
    use crate::operand::{Input, Number};
    match value {
        Dyn::Array(array) | Dyn::Borrowed(array) => Ok(Input::Array(array)),
        Dyn::Int(value) => Ok(Input::Number(Number::Int(*value as i64))),
        Dyn::Float(value) => Ok(Input::Number(Number::Float(*value))),
        other => {
            let message = format!("takes arrays and numbers, not {}", other.kind_name());
            Err(Fault::new(FaultKind::Argument, name, message))
        }
    }
}
