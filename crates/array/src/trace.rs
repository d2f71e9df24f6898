//! Traces: while one runs, every op of this thread becomes an equation of its program, also on
//! arrays that were made outside; those become hidden parameters, each once.

use crate::ambient::{origin, placed};
use crate::array::{Array, Repr};
use crate::operand::Input;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vramlab_ir::{
    BufferId, DType, Fault, FaultKind, Func, FuncBuilder, Literal, Op, Origin, Param, Params,
    Shape, Type, Value,
};

struct Trace {
    id: u64,
    builder: FuncBuilder,
    captured: Vec<Array>,
    captures: HashMap<Capture, Value>,
}

/// What an array from outside is known by.
#[derive(PartialEq, Eq, Hash)]
enum Capture {
    Buffer(BufferId),
    Outer(u64, Value),
}

/// A finished trace. The program's parameters are those asked for, then one for each of `captured`.
pub(crate) struct Finished {
    pub func: Arc<Func>,
    pub captured: Vec<Array>,
}

thread_local! {
    static TRACES: RefCell<Vec<Trace>> = const { RefCell::new(Vec::new()) };
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Whether a trace runs on this thread.
pub(crate) fn active() -> bool {
    TRACES.with_borrow(|traces| !traces.is_empty())
}

/// Runs `body` on parameters of the given types and keeps what it did as a program. Whatever way
/// `body` ends, the trace is over afterwards.
pub(crate) fn run<T>(
    name: &str,
    params: &[Type],
    body: impl FnOnce(&[Array]) -> Result<(Vec<Array>, T), Fault>,
) -> Result<(Finished, T), Fault> {
    run_named(name, params, Vec::new(), body)
}

/// The same with names of the parameters, which faults and tables say.
pub(crate) fn run_named<T>(
    name: &str,
    params: &[Type],
    arg_names: Vec<String>,
    body: impl FnOnce(&[Array]) -> Result<(Vec<Array>, T), Fault>,
) -> Result<(Finished, T), Fault> {
    struct Guard(usize);
    impl Drop for Guard {
        fn drop(&mut self) {
            // Taken out first: dropping a captured array may run code that looks at the traces.
            let ended = TRACES.with_borrow_mut(|traces| traces.split_off(self.0));
            drop(ended);
        }
    }
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut builder = FuncBuilder::new(name);
    let arguments: Vec<Array> =
        params.iter().map(|ty| Array::traced(id, builder.param(ty.clone()), ty.clone())).collect();
    builder.name_params(arg_names);
    let trace = Trace { id, builder, captured: Vec::new(), captures: HashMap::new() };
    let depth = TRACES.with_borrow_mut(|traces| {
        traces.push(trace);
        traces.len() - 1
    });
    let _guard = Guard(depth);
    let (results, rest) = body(&arguments)?;
    TRACES.with_borrow_mut(|traces| {
        let (trace, outer) = innermost(traces, depth);
        let values: Result<Vec<Value>, Fault> =
            results.iter().map(|result| trace.lift(result, outer)).collect();
        values.map(|_| ())
    })?;
    let trace = TRACES
        .with_borrow_mut(|traces| traces.pop())
        .expect("the trace pushed above is popped once, by the guard only when the body failed");
    let values = results.iter().map(|result| trace.known(result)).collect();
    let func = Arc::new(trace.builder.finish(values));
    Ok((Finished { func, captured: trace.captured }, rest))
}

/// The trace at `depth`, and those around it.
fn innermost(traces: &mut [Trace], depth: usize) -> (&mut Trace, &[Trace]) {
    let (outer, inner) = traces.split_at_mut(depth);
    (&mut inner[0], outer)
}

impl Trace {
    /// The value of `array` in this trace; an array from outside becomes a hidden parameter.
    fn lift(&mut self, array: &Array, outer: &[Trace]) -> Result<Value, Fault> {
        let capture = match &array.repr {
            Repr::Traced(traced) if traced.trace == self.id => return Ok(traced.value),
            Repr::Traced(traced) if outer.iter().any(|trace| trace.id == traced.trace) => {
                Capture::Outer(traced.trace, traced.value)
            }
            Repr::Traced(traced) => return Err(leaked(&traced.ty)),
            Repr::Concrete(_) => Capture::Buffer(array.handle("jit")?.buffer),
        };
        if let Some(&value) = self.captures.get(&capture) {
            return Ok(value);
        }
        let value = self.builder.param(array.ty().clone());
        if let Some(name) = param_name(outer, array) {
            self.builder.name_last_param(name);
        }
        self.captures.insert(capture, value);
        self.captured.push(array.alias());
        Ok(value)
    }

    /// As [`Trace::lift`], for arrays that were lifted before.
    fn known(&self, array: &Array) -> Value {
        let capture = match &array.repr {
            Repr::Traced(traced) if traced.trace == self.id => return traced.value,
            Repr::Traced(traced) => Capture::Outer(traced.trace, traced.value),
            Repr::Concrete(handle) => Capture::Buffer(handle.buffer),
        };
        self.captures[&capture]
    }

    fn push(&mut self, op: Op, params: Params, inputs: &[Value]) -> Result<Vec<Value>, Fault> {
        self.builder.push(op, params, inputs, written_at()).map_err(placed)
    }

    fn literal(&mut self, literal: Literal) -> Result<Value, Fault> {
        let params = Params::new()
            .with("value", Param::Literal(literal))
            .with("shape", Param::Shape(Shape::scalar()));
        Ok(self.push(&vramlab_ops::FULL, params, &[])?[0])
    }

    fn convert(&mut self, value: Value, dtype: DType) -> Result<Value, Fault> {
        if self.builder.ty(value).dtype == dtype {
            return Ok(value);
        }
        let params = Params::new().with("dtype", Param::DType(dtype));
        Ok(self.push(&vramlab_ops::CONVERT, params, &[value])?[0])
    }

    fn input(&mut self, input: &Input, dtype: DType, outer: &[Trace]) -> Result<Value, Fault> {
        match input {
            Input::Number(number) => self.literal(number.literal(dtype)),
            Input::Array(array) => {
                let value = self.lift(array, outer)?;
                self.convert(value, dtype)
            }
        }
    }
}

/// Appends an op to the innermost trace, each input converted to its element type first.
pub(crate) fn stage(
    op: Op,
    params: Params,
    inputs: &[Input],
    dtypes: &[DType],
) -> Result<Vec<Array>, Fault> {
    TRACES.with_borrow_mut(|traces| {
        let depth = traces.len() - 1;
        let (trace, outer) = innermost(traces, depth);
        let values: Result<Vec<Value>, Fault> = inputs
            .iter()
            .zip(dtypes)
            .map(|(input, &dtype)| trace.input(input, dtype, outer))
            .collect();
        let outputs = trace.push(op, params, &values?)?;
        Ok(outputs
            .into_iter()
            .map(|value| Array::traced(trace.id, value, trace.builder.ty(value).clone()))
            .collect())
    })
}

/// What the array is called, when it is a named parameter of one of these traces.
fn param_name<'t>(traces: &'t [Trace], array: &Array) -> Option<&'t str> {
    let Repr::Traced(traced) = &array.repr else { return None };
    traces.iter().find(|trace| trace.id == traced.trace)?.builder.param_name(traced.value)
}

/// A fault of an op about its operands, with the names of those that are named parameters:
/// `…; f32[4,3] is params.layers[1].w`.
pub(crate) fn naming(mut fault: Fault, inputs: &[Input]) -> Fault {
    if !matches!(fault.kind, FaultKind::Shape | FaultKind::DType | FaultKind::Argument) {
        return fault;
    }
    TRACES.with_borrow(|traces| {
        for input in inputs {
            let Input::Array(array) = input else { continue };
            let Some(name) = param_name(traces, array) else { continue };
            let words = format!("; {} is {name}", array.ty());
            if !fault.message.contains(&words) {
                fault.message.push_str(&words);
            }
        }
    });
    fault
}

/// Appends an op that takes its operands as they are.
pub(crate) fn held(op: Op, params: Params, inputs: &[Array]) -> Result<Vec<Array>, Fault> {
    let dtypes: Vec<DType> = inputs.iter().map(|input| input.ty().dtype).collect();
    let inputs: Vec<Input> = inputs.iter().map(Input::Array).collect();
    stage(op, params, &inputs, &dtypes)
}

/// Appends a program's equations to the innermost trace, each with its own place.
pub(crate) fn inline(func: &Func, arguments: &[Array]) -> Result<Vec<Array>, Fault> {
    TRACES.with_borrow_mut(|traces| {
        let depth = traces.len() - 1;
        let (trace, outer) = innermost(traces, depth);
        let mut values: Vec<Option<Value>> = vec![None; func.types.len()];
        for (param, argument) in func.params.iter().zip(arguments) {
            values[param.index()] = Some(trace.lift(argument, outer)?);
        }
        let defined = "a program defines values before their use";
        for eqn in &func.eqns {
            let inputs: Vec<Value> =
                eqn.inputs.iter().map(|v| values[v.index()].expect(defined)).collect();
            let place = eqn.origin.or_else(written_at);
            let outputs =
                trace.builder.push(eqn.op, eqn.params.clone(), &inputs, place).map_err(placed)?;
            trace.builder.mark(trace.builder.eqns().len() - 1, eqn.stage);
            for (output, value) in eqn.outputs.iter().zip(outputs) {
                values[output.index()] = Some(value);
            }
        }
        let result = |value: &Value| {
            let value = values[value.index()].expect(defined);
            Array::traced(trace.id, value, trace.builder.ty(value).clone())
        };
        Ok(func.results.iter().map(result).collect())
    })
}

fn written_at() -> Option<Origin> {
    match origin() {
        place if place == Origin::default() => None,
        place => Some(place),
    }
}

/// The fault of using a value of a trace that is over, or that runs on another thread.
pub(crate) fn leaked(ty: &Type) -> Fault {
    placed(
        Fault::new(
            FaultKind::Trace,
            "",
            format!("a traced {ty} was used outside the function it was traced in"),
        )
        .help("return it from the jitted function instead of keeping it"),
    )
}
