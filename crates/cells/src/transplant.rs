//! A part of a session's variables again, with every array replaced: the same cells can then run on another engine.

use crate::interpreter::Interpreter;
use crate::value::{ClosureValue, RecordValue, SliceRef, Value};
use std::collections::HashSet;
use std::sync::Arc;
use vramlab_array::Array;
use vramlab_array::ir::Fault;

/// Why a variable cannot be had again.
#[derive(Clone, Debug)]
pub enum NoCopy {
    /// It holds a jitted or transformed function, whose programs belong to its engine.
    Function,
    /// It is in the middle of something: an iterator.
    Iterator,
    /// An array could not be made.
    Fault(Box<Fault>),
}

/// Makes the array that stands for one of the session's.
pub type Replace<'a> = dyn FnMut(&Array) -> Result<Array, Fault> + 'a;

impl Interpreter {
    /// Functions, constants and the variables of these names, with what they refer to. Names that are no variable, or
    /// whose value was moved away, are left out.
    ///
    /// # Errors
    /// The name that cannot be had again, and why.
    pub fn transplant(
        &self,
        names: &[String],
        replace: &mut Replace<'_>,
    ) -> Result<Interpreter, (String, NoCopy)> {
        let mut copy = self.without_variables();
        let mut seen = HashSet::new();
        for name in names {
            let Some(slot) = self.slot_of(name) else { continue };
            let mut wanted = vec![slot];
            while let Some(slot) = wanted.pop() {
                if !seen.insert(slot) {
                    continue;
                }
                let value = self.value_at(slot);
                let value = replaced(value, replace, &mut wanted);
                copy.put(slot, value.map_err(|why| (name.clone(), why))?);
            }
            copy.bind_as(self, name);
        }
        Ok(copy)
    }
}

fn not_made(fault: Fault) -> NoCopy {
    NoCopy::Fault(Box::new(fault))
}

/// The value with its arrays replaced. Places that it refers to are wanted too.
fn replaced(
    value: &Value,
    replace: &mut Replace<'_>,
    wanted: &mut Vec<u32>,
) -> Result<Value, NoCopy> {
    let all = |values: &[Value], replace: &mut Replace<'_>, wanted: &mut Vec<u32>| {
        values.iter().map(|value| replaced(value, replace, wanted)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match value {
        Value::Array(array) => Value::Array(replace(array).map_err(not_made)?),
        Value::Borrowed(array) => Value::Borrowed(replace(array).map_err(not_made)?),
        Value::List(values) => Value::List(all(values, replace, wanted)?),
        Value::Tuple(values) => Value::Tuple(all(values, replace, wanted)?),
        Value::Struct(names, fields) => {
            let fields = all(fields, replace, wanted)?;
            Value::Struct(names.clone(), fields.into_boxed_slice())
        }
        Value::Option(Some(value)) => Value::some(replaced(value, replace, wanted)?),
        Value::Ref(place) => {
            wanted.push(place.slot);
            Value::Ref(place.clone())
        }
        Value::Slice(slice) => Value::Slice(Box::new(SliceRef {
            list: replaced(&slice.list, replace, wanted)?,
            start: slice.start,
            end: slice.end,
        })),
        Value::Closure(closure) => Value::Closure(Box::new(ClosureValue {
            code: closure.code.clone(),
            captures: all(&closure.captures, replace, wanted)?,
        })),
        Value::Record(record) => {
            let mut fields = Vec::with_capacity(record.fields.len());
            for (name, value) in &record.fields {
                fields.push((*name, replaced(value, replace, wanted)?));
            }
            Value::Record(Arc::new(RecordValue { name: record.name, fields }))
        }
        Value::Function(_) => return Err(NoCopy::Function),
        Value::Iter(_) => return Err(NoCopy::Iterator),
        Value::Gone
        | Value::Unit
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Char(_)
        | Value::Text(_)
        | Value::DType(_)
        | Value::Option(None)
        | Value::Range(_)
        | Value::Code(_) => value.alias(),
    })
}
