//! How an op is written for a whole batch at once, and what such rules are written with.
//!
//! Operands that have the batch's axis have it in front. Most rules move the op's own axes one to
//! the right; where that is no op of the table, the examples are gone through by a scan.

use crate::entry::Entry;
use crate::rule::{self, Emit, Term};
use crate::{FULL, SCAN};
use std::sync::Arc;
use vramlab_ir::{
    Batched, Batching, DType, FuncBuilder, Literal, Param, Params, Shape, Type, Value,
};

/// How an op is written over one more leading axis: a required column of the table.
pub enum Batch {
    /// Element by element: the operands' axes are counted from the back, so only ranks must agree.
    Elementwise,
    /// The result with the batch's axis in front.
    Rule(for<'r> fn(&Examples<'r>) -> Term<'r>),
    /// It has no operands that could differ; why.
    Never(&'static str),
    /// The op applies functions that it holds; batching goes into these.
    Held,
}

/// One equation to write for all examples, for a rule to read.
pub struct Examples<'r> {
    writer: &'r dyn Emit,
    op: &'static Entry,
    inputs: &'r [Value],
    batched: &'r [bool],
    pub params: &'r Params,
    /// How many examples there are.
    pub size: usize,
}

/// Runs an entry's rule.
pub(crate) fn write(op: &'static Entry, batching: Batching) -> Batched {
    let Batching { builder, inputs, params, batched, size, origin } = batching;
    rule::writing(builder, origin, |writer| {
        let examples = Examples { writer, op, inputs, batched, params, size };
        let result = match op.batch {
            Batch::Elementwise => examples.elementwise(),
            Batch::Rule(rule) => rule(&examples),
            Batch::Never(_) | Batch::Held => {
                unreachable!("{} is not batched by a rule", op.name)
            }
        };
        vec![result.value()]
    })
}

impl<'r> Examples<'r> {
    /// Operand `k` as it is: with the batch's axis or without.
    pub fn x(&self, k: usize) -> Term<'r> {
        Term::new(self.writer, self.inputs[k])
    }

    pub fn operands(&self) -> usize {
        self.inputs.len()
    }

    pub fn batched(&self, k: usize) -> bool {
        self.batched[k]
    }

    /// The shape of operand `k` in one example.
    pub fn shape(&self, k: usize) -> Shape {
        let shape = self.x(k).shape();
        match self.batched[k] {
            true => Shape::new(shape[1..].to_vec()),
            false => shape,
        }
    }

    /// Operand `k` with the batch's axis in front, repeated if it had none.
    pub fn front(&self, k: usize) -> Term<'r> {
        match self.batched[k] {
            true => self.x(k),
            false => self.x(k).broadcast(&self.leading(&self.shape(k))),
        }
    }

    /// `shape` behind the batch's axis.
    pub fn leading(&self, shape: &[usize]) -> Shape {
        Shape::new([&[self.size], shape].concat())
    }

    /// The equation's own op.
    pub fn apply(&self, params: Params, inputs: &[Term<'r>]) -> Term<'r> {
        self.op(self.op, params, inputs)
    }

    pub fn op(&self, op: &'static Entry, params: Params, inputs: &[Term<'r>]) -> Term<'r> {
        let inputs: Vec<Value> = inputs.iter().map(|term| term.value()).collect();
        Term::new(self.writer, self.writer.emit(op, params, &inputs))
    }

    /// The parameters with some of them changed.
    pub fn with(&self, change: impl Fn(&str, &Param) -> Option<Param>) -> Params {
        self.params.iter().fold(Params::new(), |params, (name, param)| {
            params.with(name, change(name, param).unwrap_or_else(|| param.clone()))
        })
    }

    /// The parameters with each axis that `names` hold one to the right.
    pub fn shifted(&self, names: &[&str]) -> Params {
        self.with(|name, param| match param {
            _ if !names.contains(&name) => None,
            Param::Int(axis) => Some(Param::Int(axis + 1)),
            Param::Ints(axes) => Some(Param::Ints(axes.iter().map(|axis| axis + 1).collect())),
            _ => None,
        })
    }

    /// The parameters with an entry for the batch's axis in front of what is one entry an axis.
    pub fn prefixed(&self, entries: &[(&str, i64)]) -> Params {
        self.with(|name, param| {
            let entry = entries.iter().find(|(own, _)| *own == name)?.1;
            match param {
                Param::Ints(ints) => Some(Param::Ints([&[entry], ints.as_slice()].concat())),
                Param::Shape(shape) => {
                    Some(Param::Shape(Shape::new([&[entry as usize], shape.dims()].concat())))
                }
                _ => None,
            }
        })
    }

    /// An i32 scalar.
    pub fn start(&self, value: i64) -> Term<'r> {
        let params = Params::new()
            .with("value", Param::Literal(Literal::from_i64(DType::I32, value)))
            .with("shape", Param::Shape(Shape::scalar()));
        self.op(&FULL, params, &[])
    }

    /// Ranks are made equal behind the batch's axis; broadcasting does the rest.
    fn elementwise(&self) -> Term<'r> {
        let count = self.operands();
        let rank = (0..count).map(|k| self.shape(k).rank()).max().unwrap_or(0);
        let aligned: Vec<Term<'r>> = (0..count)
            .map(|k| match self.batched[k] {
                true => {
                    let own = self.shape(k);
                    let ones = vec![1; rank - own.rank()];
                    self.x(k).reshape(&self.leading(&[&ones, own.dims()].concat()))
                }
                false => self.x(k),
            })
            .collect();
        self.apply(self.params.clone(), &aligned)
    }

    /// One example after the other, for what no op does for all of them at once: a scan whose body
    /// is the op.
    pub fn one_by_one(&self) -> Term<'r> {
        let order =
            |batched: bool| (0..self.operands()).filter(move |&k| self.batched[k] == batched);
        let mut body = FuncBuilder::new(self.op.name);
        let mut inputs = vec![Value(0); self.operands()];
        for k in order(false).chain(order(true)) {
            inputs[k] = body.param(Type::new(self.x(k).dtype(), self.shape(k)));
        }
        let results = match body.push(self.op, self.params.clone(), &inputs, None) {
            Ok(results) => results,
            // The writer meets the same fault, and keeps it.
            Err(_) => return self.apply(self.params.clone(), &[]),
        };
        let params = Params::new()
            .with("body", Param::Func(Arc::new(body.finish(results))))
            .with("length", Param::Int(self.size as i64))
            .with("consts", Param::Int(order(false).count() as i64))
            .with("carries", Param::Int(0))
            .with("reverse", Param::Bool(false));
        let operands: Vec<Term<'r>> = order(false).chain(order(true)).map(|k| self.x(k)).collect();
        self.op(&SCAN, params, &operands)
    }
}

/// The axis `from` of a term at position `to`, the others in order.
pub(crate) fn moved<'r>(x: Term<'r>, from: usize, to: usize) -> Term<'r> {
    let mut perm: Vec<usize> = (0..x.shape().rank()).filter(|&axis| axis != from).collect();
    perm.insert(to, from);
    x.transpose(&perm)
}
