//! The values of a running cell.

use crate::code::Code;
use std::fmt;
use std::sync::Arc;
use vramlab_array::ir::DType;
use vramlab_array::surface::{Callable, Dyn};
use vramlab_array::{Array, StructNames};

/// One value. The static type says how to read it: every integer is `Int`, every float `Float`
/// (rounded to its type), `String` and `&str` are `Text`, `[T; N]` and `Vec<T>` are `List`.
///
/// A shared reference to a scalar or text is a snapshot of it, which nothing can tell from the
/// reference while the borrow lasts. Other references are `Ref`.
#[derive(Debug, Default)]
pub enum Value {
    /// Moved away, or not yet initialised.
    #[default]
    Gone,
    Unit,
    Bool(bool),
    Int(i128),
    Float(f64),
    Char(char),
    Text(Arc<String>),
    DType(DType),
    Array(Array),
    /// `&Array` that came in from outside of the interpreter.
    Borrowed(Array),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    /// A struct of a cell: its fields in the order of declaration.
    Struct(Arc<StructNames>, Box<[Value]>),
    Option(Option<Box<Value>>),
    Range(Box<RangeValue>),
    Ref(Ref),
    /// `&[T]`, `&mut [T]` over a part of a list.
    Slice(Box<SliceRef>),
    Closure(Box<ClosureValue>),
    Code(Arc<crate::code::FnCell>),
    Function(Arc<dyn Callable>),
    Iter(Box<crate::iter::Iter>),
    Record(Arc<RecordValue>),
}

#[derive(Clone, Debug)]
pub struct RangeValue {
    pub start: Option<i128>,
    pub end: Option<i128>,
    pub inclusive: bool,
    /// Of characters, by their numbers.
    pub chars: bool,
}

/// A place on the stack: an absolute slot and the children to follow from it.
#[derive(Clone, Debug)]
pub struct Ref {
    pub slot: u32,
    pub path: Option<Arc<[u32]>>,
}

#[derive(Clone, Debug)]
pub struct SliceRef {
    pub list: Value,
    pub start: usize,
    pub end: usize,
}

#[derive(Debug)]
pub struct ClosureValue {
    pub code: Arc<Code>,
    pub captures: Vec<Value>,
}

#[derive(Debug)]
pub struct RecordValue {
    pub name: &'static str,
    pub fields: Vec<(&'static str, Value)>,
}

impl Value {
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(Arc::new(text.into()))
    }

    pub fn some(value: Value) -> Value {
        Value::Option(Some(Box::new(value)))
    }

    pub fn none() -> Value {
        Value::Option(None)
    }

    pub fn is_gone(&self) -> bool {
        matches!(self, Value::Gone)
    }

    /// The interpreter's own copy: arrays keep their one claim.
    pub fn alias(&self) -> Value {
        self.copy_with(&Array::alias)
    }

    /// What Rust's `clone()` gives: arrays share the buffer under a claim of their own.
    pub fn cloned(&self) -> Value {
        self.copy_with(&Array::clone)
    }

    /// The arrays that the value owns, what its closures captured among them.
    pub fn owned_arrays(&self, found: &mut Vec<Array>) {
        match self {
            Value::Array(array) => found.push(array.alias()),
            Value::List(values) | Value::Tuple(values) => {
                values.iter().for_each(|value| value.owned_arrays(found));
            }
            Value::Struct(_, fields) => fields.iter().for_each(|value| value.owned_arrays(found)),
            Value::Option(Some(value)) => value.owned_arrays(found),
            Value::Closure(closure) => {
                closure.captures.iter().for_each(|value| value.owned_arrays(found));
            }
            Value::Function(function) => found.extend(function.captured()),
            _ => {}
        }
    }

    fn copy_with(&self, array: &dyn Fn(&Array) -> Array) -> Value {
        let all = |values: &[Value]| -> Vec<Value> {
            values.iter().map(|value| value.copy_with(array)).collect()
        };
        match self {
            Value::Gone => Value::Gone,
            Value::Unit => Value::Unit,
            Value::Bool(value) => Value::Bool(*value),
            Value::Int(value) => Value::Int(*value),
            Value::Float(value) => Value::Float(*value),
            Value::Char(value) => Value::Char(*value),
            Value::Text(text) => Value::Text(text.clone()),
            Value::DType(dtype) => Value::DType(*dtype),
            Value::Array(own) => Value::Array(array(own)),
            Value::Borrowed(own) => Value::Borrowed(own.alias()),
            Value::List(values) => Value::List(all(values)),
            Value::Tuple(values) => Value::Tuple(all(values)),
            Value::Struct(names, fields) => Value::Struct(names.clone(), all(fields).into()),
            Value::Option(value) => {
                Value::Option(value.as_ref().map(|value| Box::new(value.copy_with(array))))
            }
            Value::Range(range) => Value::Range(range.clone()),
            Value::Ref(place) => Value::Ref(place.clone()),
            Value::Slice(slice) => Value::Slice(slice.clone()),
            Value::Closure(closure) => Value::Closure(Box::new(ClosureValue {
                code: closure.code.clone(),
                captures: all(&closure.captures),
            })),
            Value::Code(code) => Value::Code(code.clone()),
            Value::Function(function) => Value::Function(function.clone()),
            Value::Iter(iter) => {
                Value::Iter(Box::new(iter.copy_with(&|value| value.copy_with(array))))
            }
            Value::Record(record) => Value::Record(record.clone()),
        }
    }

    /// A value from the prelude's currency.
    pub fn from_dyn(value: Dyn) -> Value {
        match value {
            Dyn::Unit => Value::Unit,
            Dyn::Bool(value) => Value::Bool(value),
            Dyn::Int(value) => Value::Int(value),
            Dyn::Float(value) => Value::Float(value),
            Dyn::Char(value) => Value::Char(value),
            Dyn::Text(text) => Value::text(&*text),
            Dyn::DType(dtype) => Value::DType(dtype),
            Dyn::Array(array) => Value::Array(array),
            Dyn::Borrowed(array) => Value::Borrowed(array),
            Dyn::Reference(tree) => Value::from_dyn(*tree),
            Dyn::List(values) => Value::List(values.into_iter().map(Value::from_dyn).collect()),
            Dyn::Tuple(values) if values.is_empty() => Value::Unit,
            Dyn::Tuple(values) => Value::Tuple(values.into_iter().map(Value::from_dyn).collect()),
            Dyn::Range { start, end, inclusive } => {
                Value::Range(Box::new(RangeValue { start, end, inclusive, chars: false }))
            }
            Dyn::Option(value) => {
                Value::Option(value.map(|value| Box::new(Value::from_dyn(*value))))
            }
            Dyn::Function(function) => Value::Function(function),
            Dyn::Struct { names, fields } => {
                Value::Struct(names, fields.into_iter().map(Value::from_dyn).collect())
            }
            Dyn::Record { name, fields } => {
                let fields = fields.into_iter().map(|(name, value)| (name, Value::from_dyn(value)));
                Value::Record(Arc::new(RecordValue { name, fields: fields.collect() }))
            }
        }
    }

    /// The child behind one step of a place's path.
    pub fn child(&self, index: u32) -> Option<&Value> {
        match self {
            Value::List(values) | Value::Tuple(values) => values.get(index as usize),
            Value::Struct(_, fields) => fields.get(index as usize),
            Value::Option(Some(value)) if index == 0 => Some(value),
            Value::Closure(closure) => closure.captures.get(index as usize),
            _ => None,
        }
    }

    pub fn child_mut(&mut self, index: u32) -> Option<&mut Value> {
        match self {
            Value::List(values) | Value::Tuple(values) => values.get_mut(index as usize),
            Value::Struct(_, fields) => fields.get_mut(index as usize),
            Value::Option(Some(value)) if index == 0 => Some(value),
            Value::Closure(closure) => closure.captures.get_mut(index as usize),
            _ => None,
        }
    }

    /// Ends the lives inside in Rust's order: fields and elements first to last.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }
}

impl Clone for Value {
    fn clone(&self) -> Value {
        self.alias()
    }
}

impl Ref {
    pub fn child(&self, index: u32) -> Ref {
        let path: Arc<[u32]> = match &self.path {
            None => Arc::from([index]),
            Some(path) => path.iter().copied().chain([index]).collect(),
        };
        Ref { slot: self.slot, path: Some(path) }
    }

    pub fn steps(&self) -> &[u32] {
        self.path.as_deref().unwrap_or(&[])
    }
}

impl fmt::Display for RangeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(start) = self.start {
            write!(f, "{start}")?;
        }
        f.write_str(if self.inclusive { "..=" } else { ".." })?;
        if let Some(end) = self.end {
            write!(f, "{end}")?;
        }
        Ok(())
    }
}
