//! What gradient rules are written with: terms that read as arithmetic and append equations of the
//! table's own ops.

use crate::entry::Entry;
use crate::{
    ADD, BROADCAST, CONVERT, DIV, FULL, MUL, NEG, PAD, RESHAPE, SELECT, SLICE, SUB, SUM, TRANSPOSE,
};
use std::cell::{Cell, RefCell};
use vramlab_ir::{
    Cotangents, DType, Fault, FuncBuilder, Literal, Origin, Param, Params, Pullback, Shape, Type,
    Value,
};

/// How an op's gradient comes about: a required column of the table.
pub enum Derivative {
    /// The operands' cotangents.
    Rule(fn(&Rule)),
    /// Zero wherever it is defined; why.
    Zero(&'static str),
    /// None; why.
    None(&'static str),
    /// The op applies functions that it holds; reverse mode goes into these.
    Held,
}

/// Appends equations; the first fault stops the writing and is what the rule comes back with.
struct Writer<'a> {
    builder: RefCell<&'a mut FuncBuilder>,
    fault: Cell<Option<Fault>>,
    origin: Option<Origin>,
}

/// Object-safe, so that terms carry one lifetime.
pub(crate) trait Emit {
    fn emit_all(&self, op: &'static Entry, params: Params, inputs: &[Value]) -> Vec<Value>;
    fn ty(&self, value: Value) -> Type;
}

impl Emit for Writer<'_> {
    fn emit_all(&self, op: &'static Entry, params: Params, inputs: &[Value]) -> Vec<Value> {
        match self.builder.borrow_mut().push(op, params, inputs, self.origin) {
            Ok(outputs) => outputs,
            Err(fault) => {
                let first = self.fault.take().unwrap_or(fault);
                self.fault.set(Some(first));
                // Any values will do: what is written after a fault is thrown away.
                vec![inputs.first().copied().unwrap_or(Value(0)); 4]
            }
        }
    }

    fn ty(&self, value: Value) -> Type {
        self.builder.borrow().ty(value).clone()
    }
}

impl dyn Emit + '_ {
    pub(crate) fn emit(&self, op: &'static Entry, params: Params, inputs: &[Value]) -> Value {
        self.emit_all(op, params, inputs)[0]
    }
}

/// One equation with its cotangent, for a rule to read.
pub struct Rule<'r> {
    writer: &'r dyn Emit,
    inputs: &'r [Value],
    needed: &'r [bool],
    given: RefCell<Vec<Option<Value>>>,
    pub params: &'r Params,
    /// The result.
    pub out: Term<'r>,
    /// The result's cotangent.
    pub ct: Term<'r>,
}

/// A value of the program that the rule writes.
#[derive(Clone, Copy)]
pub struct Term<'r> {
    writer: &'r dyn Emit,
    value: Value,
}

/// Runs `rule` on a writer of equations; what it came back with, or the first fault.
pub(crate) fn writing<T>(
    builder: &mut FuncBuilder,
    origin: Option<Origin>,
    rule: impl FnOnce(&dyn Emit) -> T,
) -> Result<T, Fault> {
    let writer = Writer { builder: RefCell::new(builder), fault: Cell::new(None), origin };
    let written = rule(&writer);
    match writer.fault.take() {
        Some(fault) => Err(fault),
        None => Ok(written),
    }
}

/// Runs the rule of an op with one result.
pub(crate) fn write(rule: fn(&Rule), pullback: Pullback) -> Cotangents {
    let Pullback { builder, inputs, outputs, params, cotangents, needed, origin } = pullback;
    let Some(cotangent) = cotangents[0] else { return Ok(vec![None; inputs.len()]) };
    writing(builder, origin, |writer| {
        let written = Rule {
            writer,
            inputs,
            needed,
            given: RefCell::new(vec![None; inputs.len()]),
            params,
            out: Term { writer, value: outputs[0] },
            ct: Term { writer, value: cotangent },
        };
        rule(&written);
        written.given.into_inner()
    })
}

impl<'r> Rule<'r> {
    /// Operand `k`.
    pub fn x(&self, k: usize) -> Term<'r> {
        Term { writer: self.writer, value: self.inputs[k] }
    }

    pub fn operands(&self) -> usize {
        self.inputs.len()
    }

    /// Sets the cotangent of operand `k`, if it is asked for. What broadcasting repeated is summed.
    pub fn give(&self, k: usize, cotangent: impl FnOnce() -> Term<'r>) {
        if self.needed[k] {
            let shape = self.x(k).shape();
            self.given.borrow_mut()[k] = Some(cotangent().sum_to(&shape).value);
        }
    }

    /// A number of an element type, as a scalar.
    pub fn number(&self, value: f64, dtype: DType) -> Term<'r> {
        self.full(value, &Type::new(dtype, []))
    }

    /// An array with one value everywhere.
    pub fn full(&self, value: f64, ty: &Type) -> Term<'r> {
        let params = Params::new()
            .with("value", Param::Literal(Literal::from_f64(ty.dtype, value)))
            .with("shape", Param::Shape(ty.shape.clone()));
        Term { writer: self.writer, value: self.writer.emit(&FULL, params, &[]) }
    }

    pub fn ints(&self, name: &str) -> &[i64] {
        self.params.ints(name).unwrap_or_default()
    }

    /// `op` of terms, all of its results.
    pub fn ops(&self, op: &'static Entry, params: Params, inputs: &[Term<'r>]) -> Vec<Term<'r>> {
        let inputs: Vec<Value> = inputs.iter().map(|term| term.value).collect();
        let outputs = self.writer.emit_all(op, params, &inputs);
        outputs.into_iter().map(|value| Term { writer: self.writer, value }).collect()
    }

    /// `op` of terms.
    pub fn op(&self, op: &'static Entry, params: Params, inputs: &[Term<'r>]) -> Term<'r> {
        let inputs: Vec<Value> = inputs.iter().map(|term| term.value).collect();
        Term { writer: self.writer, value: self.writer.emit(op, params, &inputs) }
    }
}

impl<'r> Term<'r> {
    pub(crate) fn new(writer: &'r dyn Emit, value: Value) -> Term<'r> {
        Term { writer, value }
    }

    pub(crate) fn value(self) -> Value {
        self.value
    }

    pub fn ty(self) -> Type {
        self.writer.ty(self.value)
    }

    pub fn shape(self) -> Shape {
        self.ty().shape
    }

    pub fn dtype(self) -> DType {
        self.ty().dtype
    }

    fn emit(self, op: &'static Entry, params: Params, others: &[Term<'r>]) -> Term<'r> {
        let inputs: Vec<Value> =
            std::iter::once(self.value).chain(others.iter().map(|t| t.value)).collect();
        Term { writer: self.writer, value: self.writer.emit(op, params, &inputs) }
    }

    /// `op(self)`, of an op without parameters.
    pub fn apply(self, op: &'static Entry) -> Term<'r> {
        self.emit(op, Params::new(), &[])
    }

    /// `op(self, other)`, of an op without parameters.
    pub fn with(self, op: &'static Entry, other: Term<'r>) -> Term<'r> {
        self.emit(op, Params::new(), &[other])
    }

    /// A scalar of this term's element type.
    pub fn like(self, value: f64) -> Term<'r> {
        let params = Params::new()
            .with("value", Param::Literal(Literal::from_f64(self.dtype(), value)))
            .with("shape", Param::Shape(Shape::scalar()));
        Term { writer: self.writer, value: self.writer.emit(&FULL, params, &[]) }
    }

    /// `a` where this term is true, else `b`.
    pub fn select(self, a: Term<'r>, b: Term<'r>) -> Term<'r> {
        self.emit(&SELECT, Params::new(), &[a, b])
    }

    pub fn convert(self, dtype: DType) -> Term<'r> {
        if self.dtype() == dtype {
            return self;
        }
        self.emit(&CONVERT, Params::new().with("dtype", Param::DType(dtype)), &[])
    }

    pub fn reshape(self, shape: &Shape) -> Term<'r> {
        if self.shape() == *shape {
            return self;
        }
        self.emit(&RESHAPE, Params::new().with("shape", Param::Shape(shape.clone())), &[])
    }

    pub fn broadcast(self, shape: &Shape) -> Term<'r> {
        if self.shape() == *shape {
            return self;
        }
        self.emit(&BROADCAST, Params::new().with("shape", Param::Shape(shape.clone())), &[])
    }

    /// Axis i of the result is axis `perm[i]` of this term.
    pub fn transpose(self, perm: &[usize]) -> Term<'r> {
        if perm.is_sorted() {
            return self;
        }
        let perm = perm.iter().map(|&axis| axis as i64).collect();
        self.emit(&TRANSPOSE, Params::new().with("perm", Param::Ints(perm)), &[])
    }

    /// Elements `start..stop`, per axis.
    pub fn slice(self, start: Vec<i64>, stop: Vec<i64>) -> Term<'r> {
        let step = vec![1; start.len()];
        let whole = start.iter().all(|&from| from == 0)
            && stop.iter().zip(self.shape().iter()).all(|(&to, &extent)| to == extent as i64);
        if whole {
            return self;
        }
        let params = Params::new()
            .with("start", Param::Ints(start))
            .with("stop", Param::Ints(stop))
            .with("step", Param::Ints(step));
        self.emit(&SLICE, params, &[])
    }

    /// `value` around this term, per axis.
    pub fn pad(self, low: Vec<i64>, high: Vec<i64>, value: f64) -> Term<'r> {
        if low.iter().chain(&high).all(|&n| n == 0) {
            return self;
        }
        let params = Params::new().with("low", Param::Ints(low)).with("high", Param::Ints(high));
        self.emit(&PAD, params, &[self.like(value)])
    }

    /// The sum over axes, ascending. Halves add up in f32 and round once.
    pub fn sum(self, axes: &[usize], keep: bool) -> Term<'r> {
        if axes.is_empty() {
            return self;
        }
        let dtype = self.dtype();
        let wide = match dtype {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        };
        let axes = axes.iter().map(|&axis| axis as i64).collect();
        let params = Params::new().with("axes", Param::Ints(axes)).with("keep", Param::Bool(keep));
        self.convert(wide).emit(&SUM, params, &[]).convert(dtype)
    }

    /// Undoes a broadcast: the sum over what was repeated.
    pub fn sum_to(self, shape: &Shape) -> Term<'r> {
        let own = self.shape();
        if own == *shape {
            return self;
        }
        let fresh = own.rank() - shape.rank();
        let repeated =
            |axis: &usize| *axis < fresh || (shape[*axis - fresh] == 1 && own[*axis] != 1);
        let axes: Vec<usize> = (0..own.rank()).filter(repeated).collect();
        self.sum(&axes, false).reshape(shape)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $entry:ident)*) => {$(
        impl<'r> std::ops::$trait<Term<'r>> for Term<'r> {
            type Output = Term<'r>;
            fn $method(self, other: Term<'r>) -> Term<'r> {
                self.with(&$entry, other)
            }
        }

        impl<'r> std::ops::$trait<f64> for Term<'r> {
            type Output = Term<'r>;
            fn $method(self, other: f64) -> Term<'r> {
                self.with(&$entry, self.like(other))
            }
        }

        impl<'r> std::ops::$trait<Term<'r>> for f64 {
            type Output = Term<'r>;
            fn $method(self, other: Term<'r>) -> Term<'r> {
                other.like(self).with(&$entry, other)
            }
        }
    )*};
}

operators! { Add add ADD Sub sub SUB Mul mul MUL Div div DIV }

impl<'r> std::ops::Neg for Term<'r> {
    type Output = Term<'r>;
    fn neg(self) -> Term<'r> {
        self.apply(&NEG)
    }
}
