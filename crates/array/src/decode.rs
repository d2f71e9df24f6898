//! Reads the arguments of a dynamic call, one after the other, as the declared kinds.

use crate::array::Array;
use crate::operand::{Input, Number, Operand};
use crate::shape_arguments::Index;
use crate::surface::{Callable, Dyn};
use std::sync::Arc;
use vramlab_ir::{DType, Fault, FaultKind};

/// An operand that is held while its op runs.
#[derive(Debug)]
pub enum Held {
    Array(Array),
    Number(Number),
}

impl Operand for Held {
    fn input(&self) -> Input<'_> {
        match self {
            Held::Array(array) => Input::Array(array),
            Held::Number(number) => Input::Number(*number),
        }
    }
}

/// Arguments by position. The static check has been over them, so a wrong kind is a call from
/// elsewhere; it is a fault all the same.
pub(crate) struct Decoder {
    name: &'static str,
    arguments: std::vec::IntoIter<Dyn>,
    position: usize,
}

impl Decoder {
    pub(crate) fn new(name: &'static str, arguments: Vec<Dyn>) -> Decoder {
        Decoder { name, arguments: arguments.into_iter(), position: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Dyn, Fault> {
        self.position += 1;
        self.arguments.next().ok_or_else(|| {
            let message = format!("argument {} is missing", self.position);
            Fault::new(FaultKind::Argument, self.name, message)
        })
    }

    fn wrong(&self, wanted: &str, given: &Dyn) -> Fault {
        let message =
            format!("argument {} must be {wanted}, not {}", self.position, given.kind_name());
        Fault::new(FaultKind::Argument, self.name, message)
    }

    pub(crate) fn end(mut self) -> Result<(), Fault> {
        match self.arguments.next() {
            None => Ok(()),
            Some(_) => {
                let message = format!("takes {} arguments, and more were given", self.position);
                Err(Fault::new(FaultKind::Argument, self.name, message))
            }
        }
    }

    pub(crate) fn operand(&mut self) -> Result<Held, Fault> {
        let given = self.next()?;
        self.held(given)
    }

    fn held(&self, given: Dyn) -> Result<Held, Fault> {
        match given {
            Dyn::Array(array) | Dyn::Borrowed(array) => Ok(Held::Array(array)),
            Dyn::Int(value) => Ok(Held::Number(Number::Int(value as i64))),
            Dyn::Float(value) => Ok(Held::Number(Number::Float(value))),
            Dyn::Bool(value) => Ok(Held::Number(Number::Bool(value))),
            other => Err(self.wrong("an array or a number", &other)),
        }
    }

    pub(crate) fn array(&mut self) -> Result<Array, Fault> {
        match self.next()? {
            Dyn::Array(array) | Dyn::Borrowed(array) => Ok(array),
            other => Err(self.wrong("an array", &other)),
        }
    }

    pub(crate) fn number(&mut self) -> Result<Number, Fault> {
        match self.operand()? {
            Held::Number(number) => Ok(number),
            Held::Array(_) => {
                let message = format!("argument {} must be a number", self.position);
                Err(Fault::new(FaultKind::Argument, self.name, message))
            }
        }
    }

    pub(crate) fn int(&mut self) -> Result<i64, Fault> {
        let given = self.next()?;
        self.integer(&given)
    }

    pub(crate) fn wide(&mut self) -> Result<i128, Fault> {
        match self.next()? {
            Dyn::Int(value) => Ok(value),
            other => Err(self.wrong("an integer", &other)),
        }
    }

    fn integer(&self, given: &Dyn) -> Result<i64, Fault> {
        match given {
            Dyn::Int(value) => i64::try_from(*value).map_err(|_| self.wrong("an i64", given)),
            other => Err(self.wrong("an integer", other)),
        }
    }

    pub(crate) fn float(&mut self) -> Result<f64, Fault> {
        match self.next()? {
            Dyn::Float(value) => Ok(value),
            Dyn::Int(value) => Ok(value as f64),
            other => Err(self.wrong("a number", &other)),
        }
    }

    pub(crate) fn dtype(&mut self) -> Result<DType, Fault> {
        match self.next()? {
            Dyn::DType(dtype) => Ok(dtype),
            other => Err(self.wrong("an element type", &other)),
        }
    }

    pub(crate) fn text(&mut self) -> Result<Arc<str>, Fault> {
        match self.next()? {
            Dyn::Text(text) => Ok(text),
            other => Err(self.wrong("a string", &other)),
        }
    }

    pub(crate) fn function(&mut self) -> Result<Arc<dyn Callable>, Fault> {
        match self.next()? {
            Dyn::Function(function) => Ok(function),
            other => Err(self.wrong("a function", &other)),
        }
    }

    pub(crate) fn functions(&mut self) -> Result<Vec<Arc<dyn Callable>>, Fault> {
        let items = self.list("a list of functions")?;
        items
            .into_iter()
            .map(|item| match item {
                Dyn::Function(function) => Ok(function),
                other => Err(self.wrong("a list of functions", &other)),
            })
            .collect()
    }

    pub(crate) fn texts(&mut self) -> Result<Vec<String>, Fault> {
        let items = self.list("a list of strings")?;
        items
            .into_iter()
            .map(|item| match item {
                Dyn::Text(text) => Ok(text.to_string()),
                other => Err(self.wrong("a list of strings", &other)),
            })
            .collect()
    }

    fn list(&mut self, wanted: &str) -> Result<Vec<Dyn>, Fault> {
        match self.next()? {
            Dyn::List(items) | Dyn::Tuple(items) => Ok(items),
            other => Err(self.wrong(wanted, &other)),
        }
    }

    /// The parts of a tuple or a list.
    pub(crate) fn items(&mut self) -> Result<Vec<Dyn>, Fault> {
        self.list("a tuple")
    }

    pub(crate) fn integers(&mut self) -> Result<Vec<i64>, Fault> {
        let items = self.list("a list of integers")?;
        items.iter().map(|item| self.integer(item)).collect()
    }

    /// A shape: a list of integers, one integer, or `()`.
    pub(crate) fn shape(&mut self) -> Result<Vec<i64>, Fault> {
        match self.next()? {
            Dyn::Unit => Ok(Vec::new()),
            Dyn::Int(extent) => Ok(vec![self.integer(&Dyn::Int(extent))?]),
            Dyn::List(items) | Dyn::Tuple(items) => {
                items.iter().map(|item| self.integer(item)).collect()
            }
            other => Err(self.wrong("a shape", &other)),
        }
    }

    pub(crate) fn arrays(&mut self) -> Result<Vec<Array>, Fault> {
        let items = self.list("a list of arrays")?;
        items
            .into_iter()
            .map(|item| match item {
                Dyn::Array(array) | Dyn::Borrowed(array) => Ok(array),
                other => Err(self.wrong("a list of arrays", &other)),
            })
            .collect()
    }

    pub(crate) fn operands(&mut self) -> Result<Vec<Held>, Fault> {
        let items = self.list("a list of starts")?;
        items.into_iter().map(|item| self.held(item)).collect()
    }

    /// Pairs of integers: `[(1, 2), (0, 0)]`.
    pub(crate) fn pairs(&mut self) -> Result<Vec<(i64, i64)>, Fault> {
        let items = self.list("a list of pairs")?;
        items
            .iter()
            .map(|item| match item {
                Dyn::Tuple(pair) | Dyn::List(pair) if pair.len() == 2 => {
                    Ok((self.integer(&pair[0])?, self.integer(&pair[1])?))
                }
                other => Err(self.wrong("a list of pairs", other)),
            })
            .collect()
    }

    /// What `arange` counts through: start and end.
    pub(crate) fn interval(&mut self) -> Result<(f64, f64), Fault> {
        match self.next()? {
            Dyn::Int(end) => Ok((0.0, end as f64)),
            Dyn::Range { start: Some(start), end: Some(end), inclusive } => {
                Ok((start as f64, end as f64 + inclusive as u8 as f64))
            }
            other => Err(self.wrong("a count or a range", &other)),
        }
    }

    pub(crate) fn indices(&mut self) -> Result<Vec<Index>, Fault> {
        match self.next()? {
            Dyn::Tuple(items) => items.iter().map(|item| self.index(item)).collect(),
            single => Ok(vec![self.index(&single)?]),
        }
    }

    fn index(&self, given: &Dyn) -> Result<Index, Fault> {
        match given {
            Dyn::Int(_) => Ok(Index::At(self.integer(given)?)),
            Dyn::Range { start, end, inclusive } => {
                let bound = |bound: &Option<i128>| {
                    bound.map(|value| self.integer(&Dyn::Int(value))).transpose()
                };
                Ok(Index::Range { start: bound(start)?, end: bound(end)?, inclusive: *inclusive })
            }
            other => Err(self.wrong("an index or a range", other)),
        }
    }
}
