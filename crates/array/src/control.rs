//! Loops and branches of functions of trees: the functions are traced, and the loop becomes one
//! equation of the running trace, or one program that runs at once.

use crate::ambient::placed;
use crate::array::Array;
use crate::create::array_of;
use crate::eager;
use crate::elementwise::binary;
use crate::jit::Results;
use crate::layout::positions;
use crate::leaner::Scan;
use crate::operand::{Input, Number, Operand};
use crate::structure::Structure;
use crate::trace::{self, Finished};
use std::sync::Arc;
use vramlab_ir::{DType, Fault, FaultKind, Func, Op, Param, Params, Shape, Type};
use vramlab_ops::{ADD, CALL, COND, IOTA, LT, WHILE};

/// Arrays and how they are held.
pub(crate) type Held = Results;

/// A function of one tree.
pub(crate) type One<'a> = &'a dyn Fn(Held) -> Result<Results, Fault>;
/// A function of two.
pub(crate) type Two<'a> = &'a dyn Fn(Held, Held) -> Result<Results, Fault>;

/// Goes through the slices of `xs` from the first to the last, or back: `f(carry, slice)` gives the
/// next carry and a slice of the results. The last carry and the results.
///
/// # Errors
/// Arrays of different lengths, a carry that changes its type, a fault of `f`.
pub(crate) fn scan(
    name: &'static str,
    reverse: bool,
    f: Two,
    init: Held,
    xs: Held,
) -> Result<Results, Fault> {
    let length = length_of(name, &xs)?;
    let slices = xs.0.iter().map(|x| Type::new(x.ty().dtype, &x.ty().shape[1..]));
    let types: Vec<Type> = types(&init.0).into_iter().chain(slices).collect();
    let carries = init.0.len();
    let body = |arrays: &[Array]| {
        let (carry, slices) = arrays.split_at(carries);
        let given = (aliases(carry), init.1.clone());
        let (results, structure) = f(given, (aliases(slices), xs.1.clone()))?;
        let (carried, stacked) = pair(name, structure)?;
        same_carry(name, &init, &carried, &results)?;
        Ok((results, stacked))
    };
    let names = [init.1.paths("carry"), xs.1.paths("slice")].concat();
    let (finished, stacked) = trace::run_named(name, &types, names, body)?;
    let own = types.len();
    let (body, captured) = consts_first(finished, own);
    let consts = captured.len();
    let (op, params) = Scan { body, length, consts, carries, reverse }.written().map_err(placed)?;
    let inputs: Vec<Array> =
        captured.iter().chain(&init.0).chain(&xs.0).map(Array::alias).collect();
    let results = applied(op, params, &inputs)?;
    Ok((results, Structure::Tuple(vec![init.1, stacked])))
}

/// The leading extent that all arrays share.
fn length_of(name: &'static str, xs: &Held) -> Result<usize, Fault> {
    let paths = xs.1.paths("xs");
    let mut length = None;
    for (x, path) in xs.0.iter().zip(&paths) {
        let Some(&extent) = x.ty().shape.first() else {
            let message = format!("{path} is {}: a scalar has no slices to go through", x.ty());
            return Err(placed(Fault::new(FaultKind::Shape, name, message)));
        };
        match length {
            None => length = Some((extent, path)),
            Some((known, _)) if known == extent => {}
            Some((known, first)) => {
                let message =
                    format!("{first} has {known} slices along its leading axis, {path} {extent}");
                return Err(placed(Fault::new(FaultKind::Shape, name, message)));
            }
        }
    }
    length.map(|(extent, _)| extent).ok_or_else(|| {
        placed(Fault::new(FaultKind::Argument, name, "there are no arrays to go through"))
            .help("fori_loop counts without arrays")
    })
}

/// The two parts of what a scanned function returns.
fn pair(name: &'static str, structure: Structure) -> Result<(Structure, Structure), Fault> {
    match structure {
        Structure::Tuple(mut parts) if parts.len() == 2 => {
            let second = parts.pop().expect("there are two");
            Ok((parts.pop().expect("there are two"), second))
        }
        other => {
            let message = format!("the function gives {other}, not (carry, result)");
            Err(placed(Fault::new(FaultKind::Trace, name, message)))
        }
    }
}

/// The carry leaves the function with the structure and the types that it entered with.
fn same_carry(
    name: &'static str,
    init: &Held,
    structure: &Structure,
    results: &[Array],
) -> Result<(), Fault> {
    if let Some(words) = init.1.difference(structure, "carry") {
        let message = format!("the function does not give its carry back: {words}");
        return Err(placed(Fault::new(FaultKind::Trace, name, message)));
    }
    let mut pairs = init.0.iter().zip(results);
    let Some(at) = pairs.position(|(entered, left)| entered.ty() != left.ty()) else {
        return Ok(());
    };
    let path = init.1.paths("carry").swap_remove(at);
    let (entered, left) = (init.0[at].ty(), results[at].ty());
    let kind = if entered.dtype == left.dtype { FaultKind::Shape } else { FaultKind::DType };
    let message = format!("{path} enters the body as {entered} and leaves it as {left}");
    Err(placed(Fault::new(kind, name, message))
        .help("a carried value keeps its shape and element type; convert it in the body"))
}

/// Goes on with `body` while `cond` holds.
///
/// # Errors
/// A condition that is no bool scalar, a carry that changes its type, a fault of a function.
pub(crate) fn repeat(cond: One, body: One, init: Held) -> Result<Results, Fault> {
    while_of("while_loop", cond, body, init)
}

fn while_of(name: &'static str, cond: One, body: One, init: Held) -> Result<Results, Fault> {
    let types = types(&init.0);
    let held = |arrays: &[Array]| (aliases(arrays), init.1.clone());
    let asked = |arrays: &[Array]| {
        let (results, structure) = cond(held(arrays))?;
        match structure {
            Structure::Array => Ok((results, ())),
            other => {
                let message = format!("the condition gives {other}, not one array");
                Err(placed(Fault::new(FaultKind::Trace, name, message)))
            }
        }
    };
    let (finished, ()) = trace::run_named("cond", &types, init.1.paths("carry"), asked)?;
    let (cond, cond_captured) = consts_first(finished, types.len());
    let step = |arrays: &[Array]| {
        let (results, structure) = body(held(arrays))?;
        same_carry(name, &init, &structure, &results)?;
        Ok((results, ()))
    };
    let (finished, ()) = trace::run_named("body", &types, init.1.paths("carry"), step)?;
    let (body, body_captured) = consts_first(finished, types.len());
    let params = Params::new()
        .with("cond", Param::Func(cond))
        .with("body", Param::Func(body))
        .with("cond_consts", Param::Int(cond_captured.len() as i64))
        .with("body_consts", Param::Int(body_captured.len() as i64));
    let inputs = cond_captured.iter().chain(&body_captured).chain(&init.0);
    let inputs: Vec<Array> = inputs.map(Array::alias).collect();
    Ok((applied(&WHILE, params, &inputs)?, init.1))
}

/// `body(i, carry)` for i from `lo` to before `hi`. Between two numbers it is a scan, which has
/// gradients; otherwise the number of iterations is known only when it runs.
///
/// # Errors
/// Bounds that are no integers, a carry that changes its type, a fault of `body`.
pub(crate) fn fori(lo: Input, hi: Input, body: Two, init: Held) -> Result<Results, Fault> {
    match (lo, hi) {
        (Input::Number(Number::Int(lo)), Input::Number(Number::Int(hi))) => {
            counted(lo, hi, body, init)
        }
        _ => {
            let (first, last) = (positions("fori_loop", lo)?, positions("fori_loop", hi)?);
            counting(first, last, body, init)
        }
    }
}

fn counted(lo: i64, hi: i64, body: Two, init: Held) -> Result<Results, Fault> {
    if trace::active() {
        return counted_here(lo, hi, body, init);
    }
    // The range is part of the program, so that no array is made of it.
    let structure = init.1;
    let whole = |arrays: &[Array]| {
        counted_here(lo, hi, body, (aliases(arrays), structure.clone())).map(|held| (held.0, ()))
    };
    let (Finished { func, captured }, ()) = trace::run("fori_loop", &types(&init.0), whole)?;
    let params =
        Params::new().with("kind", Param::Text("jit".into())).with("func", Param::Func(func));
    let inputs: Vec<Array> = init.0.iter().chain(&captured).map(Array::alias).collect();
    Ok((applied(&CALL, params, &inputs)?, structure))
}

fn counted_here(lo: i64, hi: i64, body: Two, init: Held) -> Result<Results, Fault> {
    let length = usize::try_from(hi.saturating_sub(lo)).unwrap_or(0);
    let range = Params::new()
        .with("dtype", Param::DType(DType::I32))
        .with("shape", Param::Shape(Shape::from([length])))
        .with("axis", Param::Int(0));
    let range = trace::stage(&IOTA, range, &[], &[])?;
    let step = |carry: Held, mut at: Held| {
        let at = at.0.remove(0);
        let at = match lo {
            0 => at,
            _ => binary(&ADD, at.input(), Input::Number(Number::Int(lo)))?,
        };
        let (results, structure) = body((vec![at], Structure::Array), carry)?;
        Ok((results, Structure::Tuple(vec![structure, Structure::Tuple(Vec::new())])))
    };
    let (results, structure) = scan("fori_loop", false, &step, init, (range, Structure::Array))?;
    Ok((results, pair("fori_loop", structure)?.0))
}

fn counting(lo: Array, hi: Array, body: Two, init: Held) -> Result<Results, Fault> {
    let structure = Structure::Tuple(vec![Structure::Array, init.1]);
    let cond = |(arrays, _): Held| {
        let goes_on = binary(&LT, arrays[0].input(), hi.input())?;
        Ok((vec![goes_on], Structure::Array))
    };
    let step = |(mut arrays, structure): Held| {
        let at = arrays.remove(0);
        let (_, own) = pair("fori_loop", structure)?;
        let next = binary(&ADD, at.input(), Input::Number(Number::Int(1)))?;
        let (results, structure) = body((vec![at], Structure::Array), (arrays, own))?;
        let arrays = std::iter::once(next).chain(results).collect();
        Ok((arrays, Structure::Tuple(vec![Structure::Array, structure])))
    };
    let given = std::iter::once(lo).chain(init.0).collect();
    let (mut results, structure) = while_of("fori_loop", &cond, &step, (given, structure))?;
    results.remove(0);
    Ok((results, pair("fori_loop", structure)?.1))
}

/// `on_true` of the operands where `holds` does, else `on_false` of them; only one of them runs.
///
/// # Errors
/// A condition that is no bool scalar, results that differ in structure or type, a fault of the
/// functions.
pub(crate) fn cond(
    holds: Input,
    on_true: One,
    on_false: One,
    operands: Held,
) -> Result<Results, Fault> {
    let holds = array_of(holds)?;
    let types = types(&operands.0);
    let branch = |name: &str, f: One| {
        let names = operands.1.paths("operands");
        trace::run_named(name, &types, names, |arrays| f((aliases(arrays), operands.1.clone())))
    };
    let (on_true, structure) = branch("on_true", on_true)?;
    let (on_false, other) = branch("on_false", on_false)?;
    if let Some(words) = structure.difference(&other, "the result") {
        let message = format!("the branches give different things: {words}");
        return Err(placed(Fault::new(FaultKind::Trace, "cond", message)));
    }
    let [yes, no] = [&on_true, &on_false].map(|branch| branch.func.result_types());
    if let Some(at) = (0..yes.len()).find(|&at| yes[at] != no[at]) {
        let path = structure.paths("the result").swap_remove(at);
        let message = format!(
            "the branches give different things: {path} is {} when the condition holds, else {}",
            yes[at], no[at]
        );
        let kind = if yes[at].dtype == no[at].dtype { FaultKind::Shape } else { FaultKind::DType };
        return Err(placed(Fault::new(kind, "cond", message)));
    }
    // Each branch also takes what the other captured.
    let behind = |finished: &Finished| crate::control::types(&finished.captured);
    let yes = with_unread(&on_true.func, on_true.func.params.len(), &behind(&on_false));
    let no = with_unread(&on_false.func, types.len(), &behind(&on_true));
    let params = Params::new().with("on_true", Param::Func(yes)).with("on_false", Param::Func(no));
    let captured = on_true.captured.iter().chain(&on_false.captured);
    let inputs = std::iter::once(&holds).chain(&operands.0).chain(captured);
    let inputs: Vec<Array> = inputs.map(Array::alias).collect();
    Ok((applied(&COND, params, &inputs)?, structure))
}

/// A program with parameters more at position `at` that it does not read.
fn with_unread(func: &Func, at: usize, unread: &[Type]) -> Arc<Func> {
    let mut func = func.clone();
    let first = func.types.len() as u32;
    func.types.extend(unread.iter().cloned());
    let values = (first..func.types.len() as u32).map(vramlab_ir::Value);
    func.params.splice(at..at, values);
    func.arg_names.clear();
    Arc::new(func)
}

/// A traced program with what it captured before its `own` parameters.
fn consts_first(finished: Finished, own: usize) -> (Arc<Func>, Vec<Array>) {
    let mut func = Arc::unwrap_or_clone(finished.func);
    func.params.rotate_left(own);
    func.arg_names.clear();
    (Arc::new(func), finished.captured)
}

/// The op in the running trace, or at once.
fn applied(op: Op, params: Params, inputs: &[Array]) -> Result<Vec<Array>, Fault> {
    if trace::active() {
        return trace::held(op, params, inputs);
    }
    let dtypes: Vec<DType> = inputs.iter().map(|input| input.ty().dtype).collect();
    let inputs: Vec<Input> = inputs.iter().map(Input::Array).collect();
    eager::equation(op, params, &inputs, &dtypes)
}

fn types(arrays: &[Array]) -> Vec<Type> {
    arrays.iter().map(|array| array.ty().clone()).collect()
}

fn aliases(arrays: &[Array]) -> Vec<Array> {
    arrays.iter().map(Array::alias).collect()
}
