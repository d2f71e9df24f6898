//! Entries of the surface table that are not ops on arrays: creation, constants, reading,
//! transforms, the device.

use crate::array::Array;
use crate::decode::Decoder;
use crate::device::{self, MemoryStats};
use crate::element::{self, Nested, measure_row};
use crate::host::{host, wait};
use crate::jit::{self, Arg, JitCore, Results};
use crate::operand::Operand;
use crate::structure::Structure;
use crate::surface::{Callable, Dyn, Item, Place};
use crate::tree_functions::{Held, in_front};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use vramlab_ir::{DType, Explanation, Fault, FaultKind, Literal, MemoryAnalysis};

/// A literal of the instant tier.
impl Nested for Dyn {
    fn dtype(&self) -> DType {
        match self {
            Dyn::Int(_) => DType::I32,
            Dyn::Bool(_) => DType::Bool,
            Dyn::List(rows) => rows.first().map_or(DType::F32, Nested::dtype),
            _ => DType::F32,
        }
    }

    fn measure(&self, depth: usize, extents: &mut Vec<usize>) -> Result<(), Fault> {
        match self {
            Dyn::List(rows) => {
                measure_row(depth, rows.len(), extents)?;
                rows.iter().try_for_each(|row| row.measure(depth + 1, extents))
            }
            Dyn::Int(_) | Dyn::Float(_) | Dyn::Bool(_) => Ok(()),
            other => {
                let message = format!("a literal holds numbers, not {}", other.kind_name());
                Err(Fault::new(FaultKind::Argument, "array", message))
            }
        }
    }

    fn append(&self, literals: &mut Vec<Literal>) {
        match self {
            Dyn::List(rows) => rows.iter().for_each(|row| row.append(literals)),
            Dyn::Int(value) => literals.push(Literal::from_i64(DType::I64, *value as i64)),
            Dyn::Bool(value) => literals.push(Literal::from_i64(DType::Bool, *value as i64)),
            Dyn::Float(value) => literals.push(Literal::from_f64(DType::F64, *value)),
            _ => {}
        }
    }
}

/// An element as a value of the instant tier.
fn read(literal: Literal, dtype: DType) -> Dyn {
    let literal = literal.convert(dtype);
    match dtype {
        DType::Bool => Dyn::Bool(literal.as_i64() != 0),
        dtype if dtype.is_float() => Dyn::Float(literal.as_f64()),
        _ => Dyn::Int(literal.as_i64() as i128),
    }
}

fn size(value: usize) -> Dyn {
    Dyn::Int(value as i128)
}

/// A method of `Array` that reads its type.
fn reading(name: &'static str, arguments: Vec<Dyn>, read: fn(&Array) -> Dyn) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let array = decoder.array()?;
    decoder.end()?;
    Ok(read(&array))
}

const ARRAY: Place = Place::Method("Array");

pub(crate) static INSPECTION: &[Item] = &[
    Item {
        name: "array",
        place: Place::Function,
        signature: "fn array(values: impl Nested) -> Array",
        doc: "An array from nested literals; floats become f32, integers i32.",
        example: "array([[1.0, 2.0], [3.0, 4.0]])",
        call: |arguments| {
            let mut decoder = Decoder::new("array", arguments);
            let values = decoder.next()?;
            decoder.end()?;
            element::nested(&values, None).map(Dyn::Array)
        },
    },
    Item {
        name: "array_as",
        place: Place::Function,
        signature: "fn array_as(dtype: DType, values: impl Nested) -> Array",
        doc: "An array of an element type from nested literals.",
        example: "array_as(F64, [1.0, 2.0])",
        call: |arguments| {
            let mut decoder = Decoder::new("array_as", arguments);
            let dtype = decoder.dtype()?;
            let values = decoder.next()?;
            decoder.end()?;
            element::nested(&values, Some(dtype)).map(Dyn::Array)
        },
    },
    Item {
        name: "from_vec",
        place: Place::Function,
        signature: "fn from_vec<T: Element>(values: Vec<T>, shape: impl IntoShape) -> Array",
        doc: "An array from its elements in row-major order; f64 becomes f32.",
        example: "from_vec(vec![1.0, 2.0, 3.0, 4.0], [2, 2])",
        call: |arguments| {
            let mut decoder = Decoder::new("from_vec", arguments);
            let dtype = decoder.dtype()?;
            let values = decoder.next()?;
            let shape = decoder.shape()?;
            decoder.end()?;
            let mut literals = Vec::new();
            values.append(&mut literals);
            let ty = element::target(&shape, element::stored(dtype))?;
            element::from_literals(literals.into_iter(), ty).map(Dyn::Array)
        },
    },
    Item {
        name: "shape",
        place: ARRAY,
        signature: "fn shape(&self) -> Vec<usize>",
        doc: "The extent of every axis.",
        example: "zeros([2, 3]).shape()",
        call: |arguments| {
            reading("shape", arguments, |x| Dyn::List(x.shape().into_iter().map(size).collect()))
        },
    },
    Item {
        name: "dtype",
        place: ARRAY,
        signature: "fn dtype(&self) -> DType",
        doc: "The element type.",
        example: "zeros([2, 3]).dtype()",
        call: |arguments| reading("dtype", arguments, |x| Dyn::DType(x.dtype())),
    },
    Item {
        name: "len",
        place: ARRAY,
        signature: "fn len(&self) -> usize",
        doc: "The number of elements.",
        example: "zeros([2, 3]).len()",
        call: |arguments| reading("len", arguments, |x| size(x.len())),
    },
    Item {
        name: "ndim",
        place: ARRAY,
        signature: "fn ndim(&self) -> usize",
        doc: "The number of axes.",
        example: "zeros([2, 3]).ndim()",
        call: |arguments| reading("ndim", arguments, |x| size(x.ndim())),
    },
    Item {
        name: "rank",
        place: ARRAY,
        signature: "fn rank(&self) -> usize",
        doc: "The number of axes.",
        example: "zeros([2, 3]).rank()",
        call: |arguments| reading("rank", arguments, |x| size(x.rank())),
    },
    Item {
        name: "nbytes",
        place: ARRAY,
        signature: "fn nbytes(&self) -> usize",
        doc: "The bytes of the elements.",
        example: "zeros([2, 3]).nbytes()",
        call: |arguments| reading("nbytes", arguments, |x| size(x.nbytes())),
    },
    Item {
        name: "item",
        place: ARRAY,
        signature: "fn item(&self) -> f64",
        doc: "The one element of an array that has one.",
        example: "ones([2, 3]).sum().item()",
        call: |arguments| {
            let mut decoder = Decoder::new("item", arguments);
            let array = decoder.array()?;
            decoder.end()?;
            Ok(Dyn::Float(element::item(&array)?.as_f64()))
        },
    },
    Item {
        name: "item_as",
        place: ARRAY,
        signature: "fn item_as<T: Element>(&self) -> T",
        doc: "The one element, converted as by `as`.",
        example: "full([1], 2.5).item_as::<i32>()",
        call: |arguments| {
            let mut decoder = Decoder::new("item_as", arguments);
            let array = decoder.array()?;
            let dtype = decoder.dtype()?;
            decoder.end()?;
            Ok(read(element::item(&array)?, dtype))
        },
    },
    Item {
        name: "to_vec",
        place: ARRAY,
        signature: "fn to_vec<T: Element>(&self) -> Vec<T>",
        doc: "The elements in row-major order, converted as by `as`.",
        example: "ones([3]).to_vec::<f32>()",
        call: |arguments| {
            let mut decoder = Decoder::new("to_vec", arguments);
            let array = decoder.array()?;
            let dtype = decoder.dtype()?;
            decoder.end()?;
            let elements = element::elements(&array, "to_vec", |literal| read(literal, dtype))?;
            Ok(Dyn::List(elements))
        },
    },
    Item {
        name: "clone",
        place: ARRAY,
        signature: "fn clone(&self) -> Array",
        doc: "Another holder of the same bytes; copy() copies them.",
        example: "let x = ones([3]);\nlet y = x.clone();\ny",
        call: |arguments| reading("clone", arguments, |x| Dyn::Array(x.clone())),
    },
];

/// What a jitted function is called with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One list of arrays.
    Arrays,
    /// A tree that is borrowed, and a list of arrays.
    Tree,
    /// A tree by value, and a list of arrays.
    OwnTree,
}

/// A jitted function of the instant tier.
pub struct DynJit {
    core: Arc<JitCore>,
    takes: Takes,
}

/// The arguments of a call: the tree's arrays in front, where there is a tree.
struct Given {
    tree: Held,
    others: Vec<Dyn>,
}

impl DynJit {
    pub(crate) fn new(core: JitCore, takes: Takes) -> DynJit {
        DynJit { core: Arc::new(core), takes }
    }

    pub fn core(&self) -> &Arc<JitCore> {
        &self.core
    }

    /// Reads what a call is given.
    fn given(&self, decoder: &mut Decoder) -> Result<Given, Fault> {
        let tree = match self.takes {
            Takes::Arrays => (Vec::new(), jit::NO_TREE.clone()),
            Takes::Tree | Takes::OwnTree => held(decoder.next()?)?,
        };
        Ok(Given { tree, others: items_of(decoder)? })
    }

    fn arguments<'g>(&self, given: &'g Given) -> Result<Vec<Arg<'g>>, Fault> {
        let moved = self.takes == Takes::OwnTree;
        Ok(in_front(&given.tree.0, moved, call_arguments(&given.others)?))
    }

    fn lower(&self, given: &Given) -> Result<Explanation, Fault> {
        self.core.lower(&given.tree.1, &self.arguments(given)?)
    }
}

impl fmt::Debug for DynJit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl Callable for DynJit {
    /// The tree, where it takes one, and the list or tuple of arrays, as `f([&x, &w])` and
    /// `f.call((w, &x))` have it.
    fn call(&self, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
        let mut decoder = Decoder::new("call", arguments);
        let given = self.given(&mut decoder)?;
        decoder.end()?;
        let (arrays, structure) = self.core.call(&given.tree.1, &self.arguments(&given)?)?;
        Ok(rebuild(&structure, &mut arrays.into_iter()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn call_arguments(given: &[Dyn]) -> Result<Vec<Arg<'_>>, Fault> {
    given
        .iter()
        .map(|argument| match argument {
            Dyn::Array(array) => Ok(Arg::Moved(array.alias())),
            Dyn::Borrowed(array) => Ok(Arg::Borrowed(array)),
            other => {
                let message = format!("takes arrays, not {}", other.kind_name());
                Err(Fault::new(FaultKind::Argument, "call", message))
            }
        })
        .collect()
}

/// A tree by its arrays and its structure.
pub(crate) fn held(tree: Dyn) -> Result<Held, Fault> {
    let mut arrays = Vec::new();
    let structure = flatten(tree, &mut arrays)?;
    Ok((arrays, structure))
}

pub(crate) fn rebuild(structure: &Structure, arrays: &mut dyn Iterator<Item = Array>) -> Dyn {
    match structure {
        Structure::Array => arrays.next().map_or(Dyn::Unit, Dyn::Array),
        Structure::Tuple(items) if items.is_empty() => Dyn::Unit,
        Structure::Tuple(items) => {
            Dyn::Tuple(items.iter().map(|item| rebuild(item, arrays)).collect())
        }
        Structure::List(items) => {
            Dyn::List(items.iter().map(|item| rebuild(item, arrays)).collect())
        }
        Structure::Struct(names, items) => Dyn::Struct {
            names: Arc::clone(names),
            fields: items.iter().map(|item| rebuild(item, arrays)).collect(),
        },
    }
}

/// The arrays of a result in order, and how it held them.
pub(crate) fn flatten(value: Dyn, arrays: &mut Vec<Array>) -> Result<Structure, Fault> {
    match value {
        Dyn::Array(array) | Dyn::Borrowed(array) => {
            arrays.push(array);
            Ok(Structure::Array)
        }
        Dyn::Reference(tree) => flatten(*tree, arrays),
        Dyn::Unit => Ok(Structure::Tuple(Vec::new())),
        Dyn::Tuple(items) => Ok(Structure::Tuple(flatten_all(items, arrays)?)),
        Dyn::List(items) => Ok(Structure::List(flatten_all(items, arrays)?)),
        Dyn::Struct { names, fields } => Ok(Structure::Struct(names, flatten_all(fields, arrays)?)),
        other => {
            let message = format!("a traced function returns arrays, not {}", other.kind_name());
            Err(Fault::new(FaultKind::Trace, "jit", message))
        }
    }
}

fn flatten_all(items: Vec<Dyn>, arrays: &mut Vec<Array>) -> Result<Vec<Structure>, Fault> {
    items.into_iter().map(|item| flatten(item, arrays)).collect()
}

/// A function of the instant tier in the form that can be traced.
pub(crate) fn traceable(function: &dyn Callable, arrays: &[Array]) -> Result<Results, Fault> {
    let arguments = arrays.iter().map(|array| Dyn::Borrowed(array.alias())).collect();
    let result = function.call(vec![Dyn::List(arguments)])?;
    let mut arrays = Vec::new();
    let structure = flatten(result, &mut arrays)?;
    Ok((arrays, structure))
}

fn jit_function(function: Arc<dyn Callable>) -> Dyn {
    let body = move |arrays: &[Array]| traceable(&*function, arrays);
    Dyn::Function(Arc::new(DynJit::new(JitCore::new("jit", body), Takes::Arrays)))
}

/// A method of a jitted function: what it does with the function and with the other arguments.
fn of_jit(
    name: &'static str,
    arguments: Vec<Dyn>,
    method: impl FnOnce(&DynJit, &mut Decoder) -> Result<Dyn, Fault>,
) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let function = decoder.function()?;
    let Some(jit) = function.as_any().downcast_ref::<DynJit>() else {
        return Err(Fault::new(FaultKind::Argument, name, "is not a jitted function"));
    };
    let value = method(jit, &mut decoder)?;
    decoder.end()?;
    Ok(value)
}

pub(crate) fn called(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut arguments = arguments.into_iter();
    match arguments.next() {
        Some(Dyn::Function(function)) => function.call(arguments.collect()),
        _ => Err(Fault::new(FaultKind::Argument, "call", "is not a jitted function")),
    }
}

pub(crate) fn limited(mut arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let function = arguments.first().cloned().unwrap_or_default();
    of_jit("memory_limit", std::mem::take(&mut arguments), |jit, decoder| {
        jit.core.set_memory_limit(&decoder.text()?)?;
        Ok(Dyn::Unit)
    })?;
    Ok(function)
}

pub(crate) fn analysed(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    of_jit("memory_analysis", arguments, |jit, _| {
        Ok(analysis_record(&jit::last_explanation(&jit.core, "memory_analysis")?.analysis))
    })
}

pub(crate) fn analysed_of(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    of_jit("memory_analysis_of", arguments, |jit, decoder| {
        let given = jit.given(decoder)?;
        Ok(analysis_record(&jit.lower(&given)?.analysis))
    })
}

pub(crate) fn explained(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    of_jit("explain", arguments, |jit, _| {
        Ok(Dyn::Text(jit::explanation_text(&jit::last_explanation(&jit.core, "explain")?).into()))
    })
}

pub(crate) fn lowered(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    of_jit("lower", arguments, |jit, decoder| {
        let given = jit.given(decoder)?;
        Ok(Dyn::Text(jit::explanation_text(&jit.lower(&given)?).into()))
    })
}

pub(crate) fn offered(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    of_jit("donations", arguments, |jit, decoder| {
        let given = jit.given(decoder)?;
        let text = jit.core.donations(&given.tree.1, &jit.arguments(&given)?)?;
        Ok(Dyn::Text(text.into()))
    })
}

const JIT: Place = Place::Method("Jit");

pub(crate) fn analysis_record(analysis: &MemoryAnalysis) -> Dyn {
    let field = |value: u64| Dyn::Int(value as i128);
    Dyn::Record {
        name: "MemoryAnalysis",
        fields: vec![
            ("argument_size_in_bytes", field(analysis.argument_size_in_bytes)),
            ("output_size_in_bytes", field(analysis.output_size_in_bytes)),
            ("alias_size_in_bytes", field(analysis.alias_size_in_bytes)),
            ("temp_size_in_bytes", field(analysis.temp_size_in_bytes)),
            ("generated_code_size_in_bytes", field(analysis.generated_code_size_in_bytes)),
            ("peak_memory_in_bytes", field(analysis.peak_memory_in_bytes)),
            ("host_temp_size_in_bytes", field(analysis.host_temp_size_in_bytes)),
            ("host_scratch_bytes", field(analysis.host_scratch_bytes)),
        ],
    }
}

/// The items behind a list or tuple argument.
fn items_of(decoder: &mut Decoder) -> Result<Vec<Dyn>, Fault> {
    match decoder.next()? {
        Dyn::List(items) | Dyn::Tuple(items) => Ok(items),
        other => {
            let message = format!("takes a list or tuple of arrays, not {}", other.kind_name());
            Err(Fault::new(FaultKind::Argument, "call", message))
        }
    }
}

pub(crate) static TRANSFORMS: &[Item] = &[
    Item {
        name: "jit",
        place: Place::Function,
        signature: "fn jit<const N: usize, Out: Tree + 'static>(f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static) -> Jit<N, Out>",
        doc: "A function that is traced once for each set of shapes and element types, and runs as \
              one executable.",
        example: "let f = jit(|[x, w]| x.dot(w).tanh());\nf([&ones([2, 3]), &ones([3, 4])])",
        call: |arguments| {
            let mut decoder = Decoder::new("jit", arguments);
            let function = decoder.function()?;
            decoder.end()?;
            Ok(jit_function(function))
        },
    },
    Item {
        name: "call",
        place: JIT,
        signature: "fn call(&self, arguments: impl Arguments<N>) -> Out",
        doc: "Calls with moved or borrowed arguments, in an array, a tuple or a Vec. A moved \
              array's buffer may be reused; it is gone afterwards.",
        example: "let step = jit(|[w, g]| w - g * 0.1);\nlet w = ones([3]);\nlet g = ones([3]);\n\
                  let w = step.call((w, &g));\nw",
        call: called,
    },
    Item {
        name: "memory_limit",
        place: JIT,
        signature: "fn memory_limit(self, limit: &str) -> Jit<N, Out>",
        doc: "The same function under a limit of what a call holds at its peak, arguments and results \
              included: where it would be above, values are computed again, or the least peak is named.",
        example: "let f = jit(grad(|[x]| x.tanh().sin().sum())).memory_limit(\"1MiB\");\nf([&ones([4])])",
        call: limited,
    },
    Item {
        name: "memory_analysis",
        place: JIT,
        signature: "fn memory_analysis(&self) -> MemoryAnalysis",
        doc: "Bytes of the last call's executable, under JAX's names.",
        example: "let f = jit(|[x]| x.tanh());\nlet y = f([&ones([4])]);\n\
                  f.memory_analysis().temp_size_in_bytes",
        call: analysed,
    },
    Item {
        name: "memory_analysis_of",
        place: JIT,
        signature: "fn memory_analysis_of(&self, arguments: impl Arguments<N>) -> MemoryAnalysis",
        doc: "Bytes of what a call with these arguments would run, under JAX's names; nothing runs.",
        example: "let f = jit(|[x]| x.tanh());\n\
                  f.memory_analysis_of([&ones([4])]).peak_memory_in_bytes",
        call: analysed_of,
    },
    Item {
        name: "explain",
        place: JIT,
        signature: "fn explain(&self) -> String",
        doc: "The last call's way through the compiler, stage by stage.",
        example: "let f = jit(|[x]| x.tanh());\nlet y = f([&ones([4])]);\nprintln!(\"{}\", f.explain());",
        call: explained,
    },
    Item {
        name: "lower",
        place: JIT,
        signature: "fn lower(&self, arguments: impl Arguments<N>) -> String",
        doc: "What a call with these arguments would run, as text; nothing runs.",
        example: "let f = jit(|[x]| x.tanh());\nprintln!(\"{}\", f.lower([&ones([4])]));",
        call: lowered,
    },
    Item {
        name: "donations",
        place: JIT,
        signature: "fn donations(&self, arguments: impl Arguments<N>) -> String",
        doc: "Lists each argument: whether its buffer would be reused if it were moved in, or why \
              not; nothing runs.",
        example: "let f = jit(|[x]| x.sum());\nprintln!(\"{}\", f.donations([&ones([4])]));",
        call: offered,
    },
];

/// A value as `display` shows it.
fn text_of(value: &Dyn) -> Result<String, Fault> {
    match value {
        Dyn::Array(array) | Dyn::Borrowed(array) => array.to_text(None),
        Dyn::Text(text) => Ok(text.to_string()),
        Dyn::Int(value) => Ok(value.to_string()),
        Dyn::Float(value) => Ok(value.to_string()),
        Dyn::Bool(value) => Ok(value.to_string()),
        Dyn::Char(value) => Ok(value.to_string()),
        Dyn::DType(dtype) => Ok(dtype.to_string()),
        other => {
            let message = format!("{} has no display", other.kind_name());
            Err(Fault::new(FaultKind::Argument, "display", message))
        }
    }
}

fn nothing(name: &'static str, arguments: Vec<Dyn>) -> Result<(), Fault> {
    Decoder::new(name, arguments).end()
}

fn parts(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new("split", arguments);
    let array = decoder.operand()?;
    let parts = decoder.int()?;
    let axis = decoder.int()?;
    decoder.end()?;
    let parts = crate::layout::split(array.input(), parts, axis)?;
    Ok(Dyn::List(parts.into_iter().map(Dyn::Array).collect()))
}

fn ready(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new("block_until_ready", arguments);
    decoder.operand()?;
    decoder.end()?;
    device::engine()?.synchronize();
    Ok(Dyn::Unit)
}

const SPLIT_DOC: &str = "Equal parts along an axis.";
const READY_DOC: &str = "Waits until everything that was started has run.";

pub(crate) static DEVICE: &[Item] = &[
    Item {
        name: "split",
        place: ARRAY,
        signature: "fn split(&self, parts: impl Extent, axis: i32) -> Vec<Array>",
        doc: SPLIT_DOC,
        example: "linspace(1.0, 6.0, 6).split(2, 0).len()",
        call: parts,
    },
    Item {
        name: "split",
        place: Place::Function,
        signature: "fn split(x: impl Operand, parts: impl Extent, axis: i32) -> Vec<Array>",
        doc: SPLIT_DOC,
        example: "split(linspace(1.0, 6.0, 6), 2, 0).len()",
        call: parts,
    },
    Item {
        name: "block_until_ready",
        place: ARRAY,
        signature: "fn block_until_ready(&self)",
        doc: READY_DOC,
        example: "ones([3]).block_until_ready();",
        call: ready,
    },
    Item {
        name: "block_until_ready",
        place: Place::Function,
        signature: "fn block_until_ready(x: impl Operand)",
        doc: READY_DOC,
        example: "block_until_ready(&ones([3]));",
        call: ready,
    },
    Item {
        name: "allclose",
        place: Place::Function,
        signature: "fn allclose(a: impl Operand, b: impl Operand) -> bool",
        doc: "Whether two arrays differ nowhere by more than 1e-8 + 1e-5 |b|; NaN differs.",
        example: "allclose(ones([3]), 1.0)",
        call: |arguments| {
            let mut decoder = Decoder::new("allclose", arguments);
            let (a, b) = (decoder.operand()?, decoder.operand()?);
            decoder.end()?;
            crate::composite::allclose(a.input(), b.input()).map(Dyn::Bool)
        },
    },
    Item {
        name: "memory_stats",
        place: Place::Function,
        signature: "fn memory_stats() -> MemoryStats",
        doc: "Device memory now, under JAX's names: bytes_in_use, peak_bytes_in_use, bytes_limit, …",
        example: "memory_stats().bytes_in_use",
        call: |arguments| {
            nothing("memory_stats", arguments)?;
            let stats = MemoryStats::from(device::engine()?.memory());
            Ok(Dyn::Record { name: "MemoryStats", fields: stats.fields() })
        },
    },
    Item {
        name: "reset_peak",
        place: Place::Function,
        signature: "fn reset_peak()",
        doc: "Sets peak_bytes_in_use to what is in use now.",
        example: "reset_peak();",
        call: |arguments| {
            nothing("reset_peak", arguments)?;
            device::engine()?.reset_peak();
            Ok(Dyn::Unit)
        },
    },
    Item {
        name: "live_arrays",
        place: Place::Function,
        signature: "fn live_arrays() -> Vec<Array>",
        doc: "Every array that is alive, oldest first.",
        example: "live_arrays().len()",
        call: |arguments| {
            nothing("live_arrays", arguments)?;
            let arrays = crate::array::live_arrays()?;
            Ok(Dyn::List(arrays.into_iter().map(Dyn::Array).collect()))
        },
    },
    Item {
        name: "clear_caches",
        place: Place::Function,
        signature: "fn clear_caches()",
        doc: "Drops every compiled program; arrays stay.",
        example: "clear_caches();",
        call: |arguments| {
            nothing("clear_caches", arguments)?;
            device::clear()?;
            Ok(Dyn::Unit)
        },
    },
    Item {
        name: "seed",
        place: Place::Function,
        signature: "fn seed(value: u64)",
        doc: "Starts the sequence of random numbers again.",
        example: "seed(0);\nuniform([3])",
        call: |arguments| {
            let mut decoder = Decoder::new("seed", arguments);
            let value = decoder.wide()?;
            decoder.end()?;
            crate::random::set_seed(value as u64)?;
            Ok(Dyn::Unit)
        },
    },
    Item {
        name: "scope",
        place: Place::Function,
        signature: "fn scope<R>(name: &str, body: impl FnOnce() -> R) -> R",
        doc: "Runs body as a named scope: its peak, and what it allocated and freed, show in the \
              table.",
        example: "scope(\"layer 1\", || ones([3]).tanh())",
        call: |arguments| {
            let mut decoder = Decoder::new("scope", arguments);
            let name = decoder.text()?;
            let body = decoder.function()?;
            decoder.end()?;
            let _scope = device::Scope::begin(device::engine()?, &name);
            body.call(Vec::new())
        },
    },
    Item {
        name: "display",
        place: Place::Function,
        signature: "fn display<T: Display>(value: &T)",
        doc: "Shows a value: in a notebook as rich output, in a terminal as text.",
        example: "display(&ones([3]));",
        call: |arguments| {
            let mut decoder = Decoder::new("display", arguments);
            let value = decoder.next()?;
            decoder.end()?;
            host().display(&text_of(&value)?);
            Ok(Dyn::Unit)
        },
    },
    Item {
        name: "input",
        place: Place::Function,
        signature: "fn input(prompt: &str) -> String",
        doc: "Asks the user for a line.",
        example: "let name = input(\"name? \");",
        call: |arguments| {
            let mut decoder = Decoder::new("input", arguments);
            let prompt = decoder.text()?;
            decoder.end()?;
            Ok(Dyn::Text(host().input(&prompt)?.into()))
        },
    },
    Item {
        name: "sleep",
        place: Place::Function,
        signature: "fn sleep(seconds: f64)",
        doc: "Waits; an interrupt ends the wait.",
        example: "sleep(0.01);",
        call: |arguments| {
            let mut decoder = Decoder::new("sleep", arguments);
            let seconds = decoder.float()?;
            decoder.end()?;
            wait(seconds)?;
            Ok(Dyn::Unit)
        },
    },
];
