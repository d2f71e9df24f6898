//! The transforms that users name.

use crate::joint::{Joint, Mark};
use crate::reverse::Reverse;
use vramlab_ir::{DType, Fault, FaultKind, Func, MemorySpace, Stage, Type, Value};

/// `func` and the product of cotangents with its Jacobian: parameters, then one cotangent a result;
/// results, then one cotangent for each of the parameters `wrt`. An integer result's cotangent is
/// taken and not read.
///
/// # Errors
/// A parameter that is no float, or an op without gradient on the way.
pub fn vjp(func: &Func, wrt: &[usize]) -> Result<Joint, Fault> {
    let seeds = |reverse: &mut Reverse, results: &[Value]| {
        // Cotangents are in device memory, wherever the results are.
        let types = reverse.types(results);
        let seed = |ty: &Type| reverse.writer.param(&ty.within(MemorySpace::Device));
        Ok(types.iter().map(seed).collect())
    };
    joint("vjp", func, wrt, seeds)
}

/// `func`, whose first result is a scalar, and that result's gradient: its results, then one
/// cotangent for each of the parameters `wrt`.
///
/// # Errors
/// As [`vjp`], and when the first result is no float scalar.
pub fn value_and_grad(func: &Func, wrt: &[usize]) -> Result<Joint, Fault> {
    wrt.iter().try_for_each(|&at| differentiable("grad", func, at))?;
    scalar(func)?;
    let seeds = |reverse: &mut Reverse, results: &[Value]| {
        let ty = reverse.writer.ty(results[0]).clone();
        Ok(vec![reverse.writer.full(1.0, &ty)?])
    };
    joint("grad", func, wrt, seeds)
}

fn scalar(func: &Func) -> Result<(), Fault> {
    let types = func.result_types();
    let fault = |message: String, help: &str| {
        let origin = func.results.first().and_then(|&result| {
            let made = func.eqns.iter().find(|eqn| eqn.outputs.contains(&result));
            made.and_then(|eqn| eqn.origin)
        });
        let fault = Fault::new(FaultKind::Shape, "grad", message).help(help);
        Err(crate::fault::at(fault, origin))
    };
    match types.first() {
        None => fault(
            "the function gives nothing, and a gradient is of a scalar".into(),
            "return the loss",
        ),
        Some(ty) if ty.shape.elements() != 1 || ty.shape.rank() != 0 => fault(
            format!("the function gives {ty}, and a gradient is of a scalar"),
            "reduce it with sum() or mean(), or take a vjp or the jacobian",
        ),
        Some(ty) if !ty.dtype.is_float() => fault(
            format!("the function gives {ty}, and a gradient is of a float"),
            "convert the result to f32 before anything that is to be differentiated, or compute \
             it from floats",
        ),
        Some(_) => Ok(()),
    }
}

fn joint(
    name: &str,
    func: &Func,
    wrt: &[usize],
    seeds: impl FnOnce(&mut Reverse, &[Value]) -> Result<Vec<Value>, Fault>,
) -> Result<Joint, Fault> {
    let mut reverse = Reverse::new(&format!("{name}({})", func.name));
    let params = reverse.writer.params_of(func);
    for &at in wrt {
        differentiable(name, func, at)?;
        reverse.activate(params[at]);
    }
    let mut tape = Vec::new();
    let own = reverse.forward(func, &params, &mut tape)?;
    reverse.writer.mark = Mark { stage: Stage::Backward, of: "result", origin: None };
    let seeds = seeds(&mut reverse, &own)?;
    for (&result, seed) in own.iter().zip(seeds) {
        if reverse.is_active(result) {
            reverse.accumulate(result, seed)?;
        }
    }
    reverse.backward(tape)?;
    let mut results = own;
    let count = results.len();
    for &at in wrt {
        let param = params[at];
        let cotangent = match reverse.cotangent(param) {
            Some(cotangent) => cotangent,
            None => {
                reverse.writer.mark = Mark { stage: Stage::Backward, of: "result", origin: None };
                reverse.writer.full(0.0, func.ty(func.params[at]))?
            }
        };
        results.push(cotangent);
    }
    Ok(Joint::finish(reverse.writer, params.len(), count, results))
}

pub(crate) fn differentiable(name: &str, func: &Func, at: usize) -> Result<(), Fault> {
    let Some(&param) = func.params.get(at) else {
        let message =
            format!("there is no argument {at}; the function takes {}", func.params.len());
        return Err(Fault::new(FaultKind::Argument, name, message));
    };
    let ty = func.ty(param);
    if ty.dtype.is_float() {
        return Ok(());
    }
    let what = if ty.dtype == DType::Bool { "bools have" } else { "integers have" };
    let message = format!("{} is {ty}, and {what} no gradient", func.arg_name(at));
    Err(Fault::new(FaultKind::DType, name, message)
        .help("make it a float, or name other arguments with grad_wrt"))
}
