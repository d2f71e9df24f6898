//! What leaves the machine: values for the surface, formatted text, names of arrays.

use super::{Routine, Vm};
use crate::code::{Code, Operand, Place, Step};
use crate::format::Layout;
use crate::hir::{Count, Piece};
use crate::interrupt::{Fallible, internal, panic};
use crate::ir::Fault;
use crate::show;
use crate::ty::Ty;
use crate::value::Value;
use std::sync::Arc;
use vramlab_array::surface::Dyn;

impl Vm<'_> {
    pub(super) fn place_of(&mut self, code: &Code, at: usize) {
        self.cell = code.cell;
        self.span = code.spans[at];
    }

    /// A value in the prelude's currency. References become borrows for the call.
    ///
    /// # Errors
    /// A value that the prelude has no form for.
    pub fn to_dyn(&self, value: Value) -> Fallible<Dyn> {
        Ok(match value {
            Value::Array(array) => Dyn::Array(array),
            Value::List(values) => Dyn::List(self.all_to_dyn(values)?),
            Value::Tuple(values) => Dyn::Tuple(self.all_to_dyn(values)?),
            Value::Struct(names, fields) => {
                Dyn::Struct { names, fields: self.all_to_dyn(fields.into_vec())? }
            }
            Value::Option(value) => Dyn::Option(match value {
                Some(value) => Some(Box::new(self.to_dyn(*value)?)),
                None => None,
            }),
            Value::Closure(closure) => {
                Dyn::Function(Arc::new(Routine { code: closure.code, captures: closure.captures }))
            }
            Value::Function(function) => Dyn::Function(function),
            other => self.borrowed_dyn(&other)?,
        })
    }

    pub(super) fn all_to_dyn(&self, values: Vec<Value>) -> Fallible<Vec<Dyn>> {
        values.into_iter().map(|value| self.to_dyn(value)).collect()
    }

    /// A value as the prelude borrows it.
    ///
    /// # Errors
    /// A value that the prelude has no form for.
    pub fn borrowed_dyn(&self, value: &Value) -> Fallible<Dyn> {
        let all = |values: &[Value]| -> Fallible<Vec<Dyn>> {
            values.iter().map(|value| self.borrowed_dyn(value)).collect()
        };
        Ok(match self.peel(value)? {
            Value::Gone => return Err(internal("a value")),
            Value::Unit => Dyn::Unit,
            Value::Bool(value) => Dyn::Bool(*value),
            Value::Int(value) => Dyn::Int(*value),
            Value::Float(value) => Dyn::Float(*value),
            Value::Char(value) => Dyn::Char(*value),
            Value::Text(text) => Dyn::Text(Arc::from(text.as_str())),
            Value::DType(dtype) => Dyn::DType(*dtype),
            Value::Array(array) | Value::Borrowed(array) => Dyn::Borrowed(array.alias()),
            Value::List(values) => Dyn::List(all(values)?),
            slice @ Value::Slice(_) => Dyn::List(all(self.list(slice)?)?),
            Value::Tuple(values) => Dyn::Tuple(all(values)?),
            Value::Struct(names, fields) => {
                Dyn::Struct { names: names.clone(), fields: all(fields)? }
            }
            Value::Option(value) => Dyn::Option(match value {
                Some(value) => Some(Box::new(self.borrowed_dyn(value)?)),
                None => None,
            }),
            Value::Range(range) => {
                Dyn::Range { start: range.start, end: range.end, inclusive: range.inclusive }
            }
            Value::Closure(closure) => Dyn::Function(Arc::new(Routine {
                code: closure.code.clone(),
                captures: closure.captures.iter().map(Value::alias).collect(),
            })),
            Value::Code(cell) => Dyn::Function(Arc::new(Routine {
                code: cell.code.get().ok_or_else(|| internal("a function's code"))?.clone(),
                captures: Vec::new(),
            })),
            Value::Function(function) => Dyn::Function(function.clone()),
            Value::Record(record) => Dyn::Record {
                name: record.name,
                fields: record
                    .fields
                    .iter()
                    .map(|(name, value)| Ok((*name, self.borrowed_dyn(value)?)))
                    .collect::<Fallible<_>>()?,
            },
            Value::Iter(_) => Dyn::Unit,
            Value::Ref(_) => return Err(internal("a reference")),
        })
    }

    pub(super) fn format(
        &self,
        pieces: &[Piece],
        types: &[Ty],
        values: &[Value],
    ) -> Fallible<String> {
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value { argument, spec } => {
                    let count = |count: Option<Count>| -> Fallible<Option<usize>> {
                        Ok(match count {
                            None => None,
                            Some(Count::Literal(count)) => Some(count),
                            Some(Count::Argument(index)) => match self.peel(&values[index])? {
                                Value::Int(count) => usize::try_from(*count).ok(),
                                _ => return Err(internal("a width")),
                            },
                        })
                    };
                    let layout = Layout {
                        width: count(spec.width)?,
                        precision: count(spec.precision)?,
                        spec: spec.clone(),
                    };
                    show::value(self, &mut out, &values[*argument], &types[*argument], &layout)?;
                }
            }
        }
        Ok(out)
    }

    pub(super) fn unequal(
        &mut self,
        left: &Operand,
        right: &Operand,
        types: &(Ty, Ty),
        equal: bool,
        text: Option<&Operand>,
        base: usize,
    ) -> Fallible<Fault> {
        let left = self.take(left, base)?;
        let right = self.take(right, base)?;
        let op = if equal { "==" } else { "!=" };
        let mut message = format!("assertion `left {op} right` failed");
        if let Some(text) = text
            && let Value::Text(text) = self.take(text, base)?
        {
            message.push_str(": ");
            message.push_str(&text);
        }
        let layout = Layout::debug();
        message.push_str("\n  left: ");
        show::value(self, &mut message, &left, &types.0, &layout)?;
        message.push_str("\n right: ");
        show::value(self, &mut message, &right, &types.1, &layout)?;
        Ok(panic(message))
    }

    /// Tells the session under which path each array of the place is held.
    pub(super) fn name(
        &mut self,
        place: &Place,
        name: &str,
        last: bool,
        base: usize,
    ) -> Fallible<()> {
        let mut path = name.to_string();
        let mut here = Place::slot(place.slot);
        for step in &place.steps {
            let whole = self.read(&here, base)?;
            let list = matches!(whole, Value::List(_) | Value::Slice(_));
            match step {
                Step::Deref => {}
                Step::Child(index) if !list => match whole {
                    Value::Struct(names, _) => {
                        path.push_str(&format!(".{}", names.fields[*index as usize]));
                    }
                    Value::Option(_) => {}
                    _ => path.push_str(&format!(".{index}")),
                },
                Step::Child(index) | Step::At(index) => path.push_str(&format!("[{index}]")),
                Step::Index(slot) => {
                    path.push_str(&format!("[{}]", self.index_at(*slot, base)?));
                }
                Step::FromEnd(_) => return Ok(()),
            }
            here = here.step(*step);
        }
        let mut found = Vec::new();
        let value = self.read(place, base)?;
        match value {
            Value::List(values) if last => {
                if let Some(value) = values.last() {
                    name_arrays(value, format!("{path}[{}]", values.len() - 1), &mut found);
                }
            }
            value => name_arrays(value, path, &mut found),
        }
        for (path, value) in found {
            self.host.bound(&path, &value);
        }
        Ok(())
    }
}

pub(super) fn name_arrays(value: &Value, path: String, out: &mut Vec<(String, Dyn)>) {
    match value {
        Value::Array(array) if !array.is_traced() => {
            out.push((path, Dyn::Borrowed(array.alias())));
        }
        Value::List(values) => {
            for (index, value) in values.iter().enumerate() {
                name_arrays(value, format!("{path}[{index}]"), out);
            }
        }
        Value::Tuple(values) => {
            for (index, value) in values.iter().enumerate() {
                name_arrays(value, format!("{path}.{index}"), out);
            }
        }
        Value::Struct(names, fields) => {
            for (field, value) in names.fields.iter().zip(fields) {
                name_arrays(value, format!("{path}.{field}"), out);
            }
        }
        Value::Option(Some(value)) => name_arrays(value, path, out),
        Value::Function(function) => out.push((path, Dyn::Function(function.clone()))),
        Value::Closure(_) => {
            let mut captured = Vec::new();
            value.owned_arrays(&mut captured);
            let concrete = captured.into_iter().filter(|array| !array.is_traced());
            out.extend(concrete.map(|array| (format!("captured by {path}"), Dyn::Borrowed(array))));
        }
        _ => {}
    }
}
