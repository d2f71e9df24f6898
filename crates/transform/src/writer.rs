//! Writes the joint program front to back, and keeps for every equation what it is there for.

use crate::joint::{Exchange, Mark};
use vramlab_ir::{
    Fault, Func, FuncBuilder, Literal, Op, Param, Params, Shape, Span, Stage, Type, Value,
};
use vramlab_ops::{ADD, BROADCAST, FULL};

pub(crate) struct Writer {
    pub builder: FuncBuilder,
    pub marks: Vec<Mark>,
    /// What is written from here on is there for this.
    pub mark: Mark,
    pub exchanges: Vec<Exchange>,
}

impl Writer {
    pub fn new(name: &str) -> Writer {
        let mark = Mark { stage: Stage::Forward, of: "", span: None };
        Writer { builder: FuncBuilder::new(name), marks: Vec::new(), mark, exchanges: Vec::new() }
    }

    pub fn param(&mut self, ty: &Type) -> Value {
        self.builder.param(ty.clone())
    }

    pub fn push(
        &mut self,
        op: Op,
        params: Params,
        inputs: &[Value],
        span: Option<Span>,
    ) -> Result<Vec<Value>, Fault> {
        let outputs =
            self.builder.push(op, params, inputs, span).map_err(|f| crate::fault::at(f, span))?;
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
        let span = self.mark.span;
        let params = Params::new()
            .with("value", Param::Literal(Literal::from_f64(ty.dtype, value)))
            .with("shape", Param::Shape(Shape::scalar()));
        let scalar = self.push(&FULL, params, &[], span)?[0];
        if ty.shape.rank() == 0 {
            return Ok(scalar);
        }
        let params = Params::new().with("shape", Param::Shape(ty.shape.clone()));
        Ok(self.push(&BROADCAST, params, &[scalar], span)?[0])
    }

    pub fn add(&mut self, a: Value, b: Value) -> Result<Value, Fault> {
        let span = self.mark.span;
        Ok(self.push(&ADD, Params::new(), &[a, b], span)?[0])
    }

    pub fn ty(&self, value: Value) -> &Type {
        self.builder.ty(value)
    }

    pub fn finish(self, results: Vec<Value>) -> (Func, Vec<Mark>) {
        (self.builder.finish(results), self.marks)
    }
}
