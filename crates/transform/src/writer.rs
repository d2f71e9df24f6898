//! Writes the joint program front to back, and keeps for every equation what it is there for.

use crate::joint::{Exchange, Mark};
use vramlab_ir::{
    DType, Eqn, Fault, Func, FuncBuilder, Literal, Op, Origin, Param, Params, Shape, Stage, Type,
    Value,
};
use vramlab_ops::{ADD, BROADCAST, DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, FULL, PAD, SCATTER_ADD};

/// How far back a rule's last equations are looked for.
const RECENT: usize = 8;

pub(crate) struct Writer {
    pub builder: FuncBuilder,
    pub marks: Vec<Mark>,
    /// What is written from here on is there for this.
    pub mark: Mark,
    pub exchanges: Vec<Exchange>,
}

impl Writer {
    pub fn new(name: &str) -> Writer {
        let mark = Mark { stage: Stage::Forward, of: "", origin: None };
        Writer { builder: FuncBuilder::new(name), marks: Vec::new(), mark, exchanges: Vec::new() }
    }

    pub fn param(&mut self, ty: &Type) -> Value {
        self.builder.param(ty.clone())
    }

    /// Parameters as those of `func`, with their names.
    pub fn params_of(&mut self, func: &Func) -> Vec<Value> {
        self.builder.name_params(func.arg_names.clone());
        func.params.iter().map(|&param| self.param(func.ty(param))).collect()
    }

    pub fn push(
        &mut self,
        op: Op,
        params: Params,
        inputs: &[Value],
        origin: Option<Origin>,
    ) -> Result<Vec<Value>, Fault> {
        let outputs = self
            .builder
            .push(op, params, inputs, origin)
            .map_err(|f| crate::fault::at(f, origin))?;
        self.settle();
        Ok(outputs)
    }

    /// Marks what a rule wrote.
    pub fn settle(&mut self) {
        self.builder.mark(self.marks.len(), self.mark.stage);
        self.marks.resize(self.builder.eqns().len(), self.mark);
    }

    /// One value everywhere: a scalar, repeated.
    pub fn full(&mut self, value: f64, ty: &Type) -> Result<Value, Fault> {
        let origin = self.mark.origin;
        let params = Params::new()
            .with("value", Param::Literal(Literal::from_f64(ty.dtype, value)))
            .with("shape", Param::Shape(Shape::scalar()));
        let scalar = self.push(&FULL, params, &[], origin)?[0];
        if ty.shape.rank() == 0 {
            return Ok(scalar);
        }
        let params = Params::new().with("shape", Param::Shape(ty.shape.clone()));
        Ok(self.push(&BROADCAST, params, &[scalar], origin)?[0])
    }

    pub fn add(&mut self, a: Value, b: Value) -> Result<Value, Fault> {
        let origin = self.mark.origin;
        Ok(self.push(&ADD, Params::new(), &[a, b], origin)?[0])
    }

    /// The sum of `known` and what a rule has just written. Where that is zero but for one part, the
    /// part alone is added, in its place, so that no array of zeros is ever made.
    pub fn add_up(&mut self, known: Value, cotangent: Value) -> Result<Value, Fault> {
        let origin = self.mark.origin;
        let Some(eqn) = self.defined(cotangent).cloned() else { return self.add(known, cotangent) };
        let zero = |at: usize| eqn.inputs.get(at).is_some_and(|&value| self.is_zero(value));
        match eqn.op.name() {
            name if name == PAD.name && zero(1) => {
                let starts = eqn.params.ints("low").unwrap_or_default().to_vec();
                let starts: Result<Vec<Value>, Fault> =
                    starts.into_iter().map(|at| self.position(at)).collect();
                self.add_window(known, eqn.inputs[0], &starts?)
            }
            name if name == DYNAMIC_UPDATE_SLICE.name && zero(0) => {
                self.add_window(known, eqn.inputs[1], &eqn.inputs[2..])
            }
            name if name == SCATTER_ADD.name && zero(0) => {
                let operands = [&[known], &eqn.inputs[1..]].concat();
                Ok(self.push(&SCATTER_ADD, eqn.params, &operands, origin)?[0])
            }
            _ => self.add(known, cotangent),
        }
    }

    /// `known` with `part` added to the window at `starts`.
    fn add_window(&mut self, known: Value, part: Value, starts: &[Value]) -> Result<Value, Fault> {
        let origin = self.mark.origin;
        let sizes = Param::Shape(self.ty(part).shape.clone());
        let operands = [&[known], starts].concat();
        let window =
            self.push(&DYNAMIC_SLICE, Params::new().with("sizes", sizes), &operands, origin)?;
        let sum = self.add(window[0], part)?;
        let operands = [&[known, sum], starts].concat();
        Ok(self.push(&DYNAMIC_UPDATE_SLICE, Params::new(), &operands, origin)?[0])
    }

    fn position(&mut self, at: i64) -> Result<Value, Fault> {
        let params = Params::new()
            .with("value", Param::Literal(Literal::from_i64(DType::I32, at)))
            .with("shape", Param::Shape(Shape::scalar()));
        Ok(self.push(&FULL, params, &[], self.mark.origin)?[0])
    }

    /// The equation of a value that was written a moment ago.
    fn defined(&self, value: Value) -> Option<&Eqn> {
        let recent = self.builder.eqns().iter().rev().take(RECENT);
        recent.into_iter().find(|eqn| eqn.outputs.contains(&value))
    }

    fn is_zero(&self, value: Value) -> bool {
        let Some(eqn) = self.defined(value) else { return false };
        match eqn.op.name() {
            name if name == FULL.name => {
                matches!(eqn.params.get("value"), Some(Param::Literal(zero)) if zero.as_f64() == 0.0)
            }
            name if name == BROADCAST.name => self.is_zero(eqn.inputs[0]),
            _ => false,
        }
    }

    pub fn ty(&self, value: Value) -> &Type {
        self.builder.ty(value)
    }

    pub fn finish(self, results: Vec<Value>) -> (Func, Vec<Mark>) {
        (self.builder.finish(results), self.marks)
    }
}
