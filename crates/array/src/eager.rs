//! Eager ops: a one-op program each, compiled once per (op, parameters, operand types) and run at
//! once. Numbers travel as scalar arguments, so that another number is not another program.

use crate::ambient::{self, Context, lock, origin, placed};
use crate::array::{Array, Handle};
use crate::operand::Input;
use crate::trace;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vramlab_ir::{
    Argument, BufferId, CompileKind, CompileRequest, DType, Engine, ExecutableId, Fault, FaultKind,
    Func, FuncBuilder, Literal, Op, Param, Params, Shape, Type,
};

/// A program with its executable, which comes back by itself after an eviction.
pub(crate) struct Compiled {
    pub request: CompileRequest,
    pub results: Vec<Type>,
    id: AtomicU64,
}

impl Compiled {
    pub(crate) fn new(engine: &dyn Engine, request: CompileRequest) -> Result<Compiled, Fault> {
        let id = engine.compile(&request).map_err(placed)?;
        let results = request.func.result_types();
        Ok(Compiled { request, results, id: AtomicU64::new(id.0) })
    }

    pub(crate) fn id(&self) -> ExecutableId {
        ExecutableId(self.id.load(Ordering::Acquire))
    }

    pub(crate) fn recompile(&self, engine: &dyn Engine) -> Result<ExecutableId, Fault> {
        let id = engine.compile(&self.request).map_err(placed)?;
        self.id.store(id.0, Ordering::Release);
        Ok(id)
    }

    pub(crate) fn execute(
        &self,
        engine: &dyn Engine,
        arguments: &[Argument],
    ) -> Result<Vec<BufferId>, Fault> {
        match engine.execute(self.id(), arguments, origin()) {
            Err(fault) if fault.kind == FaultKind::Evicted => {
                let id = self.recompile(engine)?;
                engine.execute(id, arguments, origin()).map_err(placed)
            }
            result => result.map_err(placed),
        }
    }
}

/// The programs of eager ops by what makes them.
#[derive(Default)]
pub(crate) struct Front {
    entries: HashMap<u64, Vec<Entry>>,
    count: usize,
}

struct Entry {
    name: &'static str,
    params: Params,
    operands: Vec<Operand>,
    compiled: Arc<Compiled>,
}

/// One operand as far as the program depends on it: its type (a number: a scalar), and the element
/// type that the op takes it in.
#[derive(PartialEq, Eq, Hash)]
struct Operand {
    ty: Type,
    dtype: DType,
}

/// Beyond this many programs the front forgets all of them; the engine's cache still has its own.
const FRONT_CAPACITY: usize = 4096;

impl Front {
    fn find(
        &self,
        hash: u64,
        name: &str,
        params: &Params,
        operands: &[Operand],
    ) -> Option<Arc<Compiled>> {
        let entries = self.entries.get(&hash)?;
        let found = entries.iter().find(|entry| {
            entry.name == name && entry.operands == operands && entry.params == *params
        })?;
        Some(Arc::clone(&found.compiled))
    }

    fn insert(&mut self, hash: u64, entry: Entry) {
        if self.count >= FRONT_CAPACITY {
            self.clear();
        }
        self.count += 1;
        self.entries.entry(hash).or_default().push(entry);
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.count = 0;
    }
}

/// Applies an op with one result: inside a trace as an equation, else at once. `name` is what the
/// user wrote; `dtypes[i]` is the element type that the op takes input i in.
pub(crate) fn apply(
    name: &'static str,
    op: Op,
    params: Params,
    inputs: &[Input],
    dtypes: &[DType],
) -> Result<Array, Fault> {
    let mut results = if trace::active() {
        trace::stage(op, params, inputs, dtypes).map_err(|fault| trace::naming(fault, inputs))?
    } else {
        let build = |operands: &[Operand], params: &Params| one_op(name, op, params, operands);
        run(name, params, inputs, dtypes, build)?
    };
    Ok(results.remove(0))
}

/// Runs a small program of several ops as one: what creation functions such as `randn` need, whose
/// intermediate values must not show up as arrays. `body` gets the scalars as arrays.
pub(crate) fn program(
    name: &'static str,
    params: Params,
    scalars: &[Literal],
    body: impl FnOnce(&[Array]) -> Result<Array, Fault>,
) -> Result<Array, Fault> {
    if trace::active() {
        let scalars: Result<Vec<Array>, Fault> =
            scalars.iter().map(|&value| literal(value)).collect();
        return body(&scalars?);
    }
    let context = ambient::current()?;
    let operands: Vec<Operand> = scalars
        .iter()
        .map(|value| Operand {
            ty: Type::new(value.dtype(), Shape::scalar()),
            dtype: value.dtype(),
        })
        .collect();
    let arguments: Vec<Argument> = scalars.iter().map(|&value| Argument::Scalar(value)).collect();
    let build = |operands: &[Operand], _: &Params| {
        let types: Vec<Type> = operands.iter().map(|operand| operand.ty.clone()).collect();
        let (finished, ()) = trace::run(name, &types, |scalars| Ok((vec![body(scalars)?], ())))?;
        Ok(finished.func)
    };
    let mut results = launch(&context, name, params, operands, &arguments, build)?;
    Ok(results.remove(0))
}

/// A scalar of the running trace.
fn literal(value: Literal) -> Result<Array, Fault> {
    let params = Params::new()
        .with("value", Param::Literal(value))
        .with("shape", Param::Shape(Shape::scalar()));
    Ok(trace::stage(&vramlab_ops::FULL, params, &[], &[])?.remove(0))
}

/// One equation of a program at once; its results. Operands have the types that the op takes.
pub(crate) fn equation(
    op: Op,
    params: Params,
    inputs: &[Input],
    dtypes: &[DType],
) -> Result<Vec<Array>, Fault> {
    let name = op.name();
    let build = |operands: &[Operand], params: &Params| one_op(name, op, params, operands);
    run(name, params, inputs, dtypes, build)
}

fn run(
    name: &'static str,
    params: Params,
    inputs: &[Input],
    dtypes: &[DType],
    build: impl FnOnce(&[Operand], &Params) -> Result<Arc<Func>, Fault>,
) -> Result<Vec<Array>, Fault> {
    let mut context = None;
    let mut operands = Vec::with_capacity(inputs.len());
    let mut arguments = Vec::with_capacity(inputs.len());
    for (input, &dtype) in inputs.iter().zip(dtypes) {
        match input {
            Input::Array(array) => {
                let handle: &Arc<Handle> = match array.is_traced() {
                    true => return Err(trace::leaked(array.ty())),
                    false => array.handle(name)?,
                };
                context.get_or_insert_with(|| Arc::new(handle.context()));
                arguments.push(Argument::Borrowed(handle.buffer));
                operands.push(Operand { ty: handle.ty.clone(), dtype });
            }
            Input::Number(number) => {
                arguments.push(Argument::Scalar(number.literal(dtype)));
                operands.push(Operand { ty: Type::new(dtype, Shape::scalar()), dtype });
            }
        }
    }
    let context = match context {
        Some(context) => context,
        None => ambient::current()?,
    };
    launch(&context, name, params, operands, &arguments, build)
}

fn launch(
    context: &Context,
    name: &'static str,
    params: Params,
    operands: Vec<Operand>,
    arguments: &[Argument],
    build: impl FnOnce(&[Operand], &Params) -> Result<Arc<Func>, Fault>,
) -> Result<Vec<Array>, Fault> {
    let mut hasher = DefaultHasher::new();
    (name, &params, &operands).hash(&mut hasher);
    let hash = hasher.finish();
    let found = lock(&context.state.front).find(hash, name, &params, &operands);
    let compiled = match found {
        Some(compiled) => compiled,
        None => {
            let func = build(&operands, &params)?;
            let donate = vec![false; func.params.len()];
            let request = CompileRequest {
                func,
                donate,
                kind: CompileKind::Eager,
                memory_limit: None,
                leaner: Vec::new(),
            };
            let compiled = Arc::new(Compiled::new(&*context.engine, request)?);
            let entry = Entry { name, params, operands, compiled: Arc::clone(&compiled) };
            lock(&context.state.front).insert(hash, entry);
            compiled
        }
    };
    let buffers = compiled.execute(&*context.engine, arguments)?;
    Ok(buffers
        .into_iter()
        .zip(&compiled.results)
        .map(|(buffer, ty)| Array::concrete(context, buffer, ty.clone()))
        .collect())
}

/// The program of one op, conversions of its operands included.
fn one_op(
    name: &'static str,
    op: Op,
    params: &Params,
    operands: &[Operand],
) -> Result<Arc<Func>, Fault> {
    let mut builder = FuncBuilder::new(name);
    let given: Vec<_> = operands.iter().map(|operand| builder.param(operand.ty.clone())).collect();
    let mut values = Vec::with_capacity(given.len());
    for (value, operand) in given.into_iter().zip(operands) {
        values.push(match operand.ty.dtype == operand.dtype {
            true => value,
            false => {
                let to = Params::new().with("dtype", Param::DType(operand.dtype));
                builder.push(&vramlab_ops::CONVERT, to, &[value], None).map_err(placed)?[0]
            }
        });
    }
    let results = builder.push(op, params.clone(), &values, None).map_err(placed)?;
    Ok(Arc::new(builder.finish(results)))
}
