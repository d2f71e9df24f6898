//! Transforms of functions of arrays: the function is traced for its arguments' types, `transform`
//! makes the other program, and that program runs where the call stands.

use crate::ambient::{origin, placed};
use crate::array::Array;
use crate::eager;
use crate::jit::Results;
use crate::operand::Input;
use crate::structure::Structure;
use crate::tape::{Names, residual_name, residual_names, run};
use crate::trace::{self, Finished};
use std::sync::Arc;
use vramlab_ir::{Fault, FaultKind, Func, Param, Params, Type, Value, arg_name};
use vramlab_ops::{CHECKPOINT, CHECKPOINT_NAME, CUSTOM_VJP, STOP_GRADIENT};
use vramlab_transform::{Joint, Policy, Split};

/// A function that can be traced: arrays in, arrays and how they are held out.
pub(crate) type Body<'a> = &'a dyn Fn(&[Array]) -> Result<Results, Fault>;

/// The same, and what its arguments are called: nothing, or a name each.
#[derive(Clone, Copy)]
pub(crate) struct Function<'a> {
    pub body: Body<'a>,
    pub arg_names: &'a [String],
}

impl<'a, F: Fn(&[Array]) -> Result<Results, Fault>> From<&'a F> for Function<'a> {
    fn from(body: &'a F) -> Function<'a> {
        Function { body, arg_names: &[] }
    }
}

impl Function<'_> {
    fn arg_name(&self, at: usize) -> String {
        arg_name(self.arg_names, at)
    }
}

/// A traced function that gives one array.
struct Traced {
    func: Arc<Func>,
    captured: Vec<Array>,
}

/// A transform's fault of itself, under the name that the user wrote.
fn refused(name: &str, mut fault: Fault) -> Fault {
    if ["grad", "vjp", "jvp", "jacobian", "jacfwd"].contains(&fault.op.as_str()) {
        fault.op = name.to_string();
    }
    let names_arguments = name.starts_with("grad") || name.starts_with("value_and_grad");
    if let Some(help) = fault.help.as_mut().filter(|_| !names_arguments) {
        *help = help.replace("name other arguments with grad_wrt", "let the function capture it");
    }
    placed(fault)
}

fn aliases(arrays: &[Array]) -> Vec<Array> {
    arrays.iter().map(Array::alias).collect()
}

fn traced(name: &'static str, f: Function, arguments: &[Array]) -> Result<Traced, Fault> {
    let single = |count: usize, structure: Structure| match structure {
        Structure::Array => Ok(()),
        _ => {
            let message = format!("the function gives {count} arrays, not one");
            Err(placed(Fault::new(FaultKind::Argument, name, message))
                .help("return the loss alone"))
        }
    };
    Ok(traced_as(f, arguments, single)?.0)
}

/// The traced function, and what `shape` makes of how many arrays it gives and how they are held.
fn traced_as<T>(
    f: Function,
    arguments: &[Array],
    shape: impl Fn(usize, Structure) -> Result<T, Fault>,
) -> Result<(Traced, T), Fault> {
    let types: Vec<Type> = arguments.iter().map(|a| a.ty().clone()).collect();
    let body = |arrays: &[Array]| {
        let (results, structure) = (f.body)(arrays)?;
        let shaped = shape(results.len(), structure)?;
        Ok((results, shaped))
    };
    let names = f.arg_names.to_vec();
    let (Finished { func, captured }, shaped) = trace::run_named("f", &types, names, body)?;
    Ok((Traced { func, captured }, shaped))
}

impl Traced {
    /// Arguments and captured arrays, as the program takes them.
    fn given(&self, arguments: &[Array]) -> Vec<Array> {
        arguments.iter().chain(&self.captured).map(Array::alias).collect()
    }
}

/// Positions of arguments from the user's numbers: negative ones count from the back.
fn positions(name: &'static str, wrt: &[i64], count: usize) -> Result<Vec<usize>, Fault> {
    let mut found = Vec::with_capacity(wrt.len());
    for &given in wrt {
        let at = if given < 0 { given + count as i64 } else { given };
        let Some(at) = usize::try_from(at).ok().filter(|&at| at < count) else {
            let message = format!("there is no argument {given}; the function takes {count}");
            return Err(placed(Fault::new(FaultKind::Argument, name, message)));
        };
        if found.contains(&at) {
            let message = format!("argument {at} is named twice in {wrt:?}");
            return Err(placed(Fault::new(FaultKind::Argument, name, message)));
        }
        found.push(at);
    }
    Ok(found)
}

/// The value, and one gradient for each of the arguments `wrt`.
///
/// # Errors
/// A fault of the function, a result that is no float scalar, an argument that is no float, an op
/// without gradient.
pub(crate) fn value_and_grad<'a>(
    name: &'static str,
    f: impl Into<Function<'a>>,
    arguments: &[Array],
    wrt: &[i64],
) -> Result<(Array, Vec<Array>), Fault> {
    let wrt = positions(name, wrt, arguments.len())?;
    let traced = traced(name, f.into(), arguments)?;
    let joint = vramlab_transform::value_and_grad(&traced.func, &wrt)
        .map_err(|fault| refused(name, fault))?;
    let mut results = run_joint(&joint, &traced.given(arguments))?;
    let gradients = results.split_off(joint.results);
    Ok((results.remove(0), gradients))
}

/// One gradient for each of the arguments `wrt`.
///
/// # Errors
/// As [`value_and_grad`].
pub(crate) fn grad<'a>(
    name: &'static str,
    f: impl Into<Function<'a>>,
    arguments: &[Array],
    wrt: &[i64],
) -> Result<Vec<Array>, Fault> {
    let wrt = positions(name, wrt, arguments.len())?;
    let traced = traced(name, f.into(), arguments)?;
    let joint = vramlab_transform::value_and_grad(&traced.func, &wrt)
        .map_err(|fault| refused(name, fault))?;
    run_joint(&joint.cotangents_only(), &traced.given(arguments))
}

/// As [`value_and_grad`] of a function that gives the loss and anything else: the loss, the rest and
/// how it is held, and the gradients of the loss.
///
/// # Errors
/// As [`value_and_grad`], and a function that gives no pair whose first part is an array.
pub(crate) fn value_and_grad_aux(
    name: &'static str,
    body: Body,
    arguments: &[Array],
    wrt: &[i64],
) -> Result<(Array, Results, Vec<Array>), Fault> {
    let wrt = positions(name, wrt, arguments.len())?;
    let pair = |_: usize, structure: Structure| match structure {
        Structure::Tuple(mut parts) if parts.len() == 2 && parts[0] == Structure::Array => {
            Ok(parts.remove(1))
        }
        _ => {
            let message = "the function gives no pair of a loss and anything else";
            Err(placed(Fault::new(FaultKind::Argument, name, message))
                .help("return (loss, aux), or use the form without aux"))
        }
    };
    let (traced, aux) = traced_as(Function { body, arg_names: &[] }, arguments, pair)?;
    let joint = vramlab_transform::value_and_grad(&traced.func, &wrt)
        .map_err(|fault| refused(name, fault))?;
    let mut results = run_joint(&joint, &traced.given(arguments))?;
    let gradients = results.split_off(joint.results);
    Ok((results.remove(0), (results, aux), gradients))
}

fn run_joint(joint: &Joint, arguments: &[Array]) -> Result<Vec<Array>, Fault> {
    run(&joint.func, arguments, &residual_names(joint))
}

/// What is left of a `vjp` to do: cotangents from what was kept.
pub(crate) struct Pullback {
    backward: Func,
    kept: Vec<Array>,
    result: Type,
}

/// The value and the way back to one cotangent for each of the first `count` arguments.
///
/// # Errors
/// As [`value_and_grad`].
pub(crate) fn vjp<'a>(
    f: impl Into<Function<'a>>,
    arguments: &[Array],
    count: usize,
) -> Result<(Array, Pullback), Fault> {
    let traced = traced("vjp", f.into(), arguments)?;
    let wrt: Vec<usize> = (0..count).collect();
    let joint =
        vramlab_transform::vjp(&traced.func, &wrt).map_err(|fault| refused("vjp", fault))?;
    let split = Split::new(&joint);
    let mut names = Names::new();
    let residuals = vramlab_transform::residuals(&joint);
    for (value, kept) in split.forward.results[joint.results..].iter().zip(&split.kept) {
        if let Some(residual) = residuals.iter().find(|residual| residual.value == *kept) {
            names.insert(*value, residual_name(residual.op, residual.origin));
        }
    }
    let mut results = run(&split.forward, &traced.given(arguments), &Names::new())?;
    let kept = results.split_off(joint.results);
    for (array, value) in kept.iter().zip(&split.forward.results[joint.results..]) {
        if let Some(name) = names.get(value) {
            array.set_owner(name);
        }
    }
    let result = results[0].ty().clone();
    Ok((results.remove(0), Pullback { backward: split.backward, kept, result }))
}

impl Pullback {
    /// The arguments' cotangents from the result's.
    ///
    /// # Errors
    /// A cotangent of another type than the result's, or a fault of an op.
    pub(crate) fn call(&self, cotangent: &Array) -> Result<Vec<Array>, Fault> {
        if *cotangent.ty() != self.result {
            let (given, wanted) = (cotangent.ty(), &self.result);
            let kind = match given.dtype == wanted.dtype {
                true => FaultKind::Shape,
                false => FaultKind::DType,
            };
            let message = format!("the cotangent is {given}, and the result is {wanted}");
            return Err(placed(Fault::new(kind, "vjp", message))
                .help("a cotangent has the result's shape and element type"));
        }
        let mut arguments = aliases(&self.kept);
        arguments.push(cotangent.alias());
        run(&self.backward, &arguments, &Names::new())
    }
}

/// The value and its derivative along tangents of the first arguments.
///
/// # Errors
/// As [`value_and_grad`], and tangents of other types than the arguments.
pub(crate) fn jvp<'a>(
    f: impl Into<Function<'a>>,
    arguments: &[Array],
    tangents: &[Array],
) -> Result<(Array, Array), Fault> {
    let f = f.into();
    for (at, (argument, tangent)) in arguments.iter().zip(tangents).enumerate() {
        if argument.ty() != tangent.ty() {
            let (name, wanted, given) = (f.arg_name(at), argument.ty(), tangent.ty());
            let message = format!("{name} is {wanted}, and its tangent is {given}");
            return Err(placed(Fault::new(FaultKind::Shape, "jvp", message)));
        }
    }
    let traced = traced("jvp", f, arguments)?;
    let wrt: Vec<usize> = (0..tangents.len()).collect();
    let joint =
        vramlab_transform::jvp(&traced.func, &wrt).map_err(|fault| refused("jvp", fault))?;
    // Tangents stand behind all parameters of the program, captured ones included.
    let mut given = traced.given(arguments);
    given.extend(aliases(tangents));
    let mut results = run(&joint.func, &given, &Names::new())?;
    let tangent = results.remove(1);
    Ok((results.remove(0), tangent))
}

/// The derivative of every element of the result by every element of the first argument: the
/// result's axes, then the argument's. One backward pass, batched.
///
/// # Errors
/// As [`value_and_grad`], but the result may have any shape.
pub(crate) fn jacobian(
    name: &'static str,
    body: Body,
    arguments: &[Array],
) -> Result<Array, Fault> {
    let traced = traced(name, Function { body, arg_names: &[] }, arguments)?;
    let joint = vramlab_transform::vjp(&traced.func, &[0]).map_err(|fault| refused(name, fault))?;
    let func = vramlab_transform::jacobian(&joint).map_err(|fault| refused(name, fault))?;
    Ok(run(&func, &traced.given(arguments), &Names::new())?.remove(0))
}

/// The function's results; inside a trace as one equation whose gradient computes the function
/// again, but for what the policy saves.
///
/// # Errors
/// A fault of the function, or a policy with a name that nothing in the function has.
pub(crate) fn checkpoint<'a>(
    policy: &Policy,
    f: impl Into<Function<'a>>,
    arguments: &[Array],
) -> Result<Results, Fault> {
    let f = f.into();
    if !trace::active() {
        return (f.body)(arguments);
    }
    let types: Vec<Type> = arguments.iter().map(|a| a.ty().clone()).collect();
    let names = f.arg_names.to_vec();
    let (finished, structure) = trace::run_named("checkpoint", &types, names, f.body)?;
    check_names(policy, &finished.func)?;
    let params = Params::new()
        .with("policy", Param::Text(policy.to_string()))
        .with("func", Param::Func(finished.func));
    let inputs: Vec<Array> = arguments.iter().chain(&finished.captured).map(Array::alias).collect();
    Ok((trace::held(&CHECKPOINT, params, &inputs)?, structure))
}

/// A policy that offloads.
///
/// # Errors
/// An unknown memory kind, or a name in both lists.
pub(crate) fn offloading(
    name: &str,
    saved: Vec<String>,
    offloaded: Vec<String>,
    kinds: [&str; 2],
) -> Result<Policy, Fault> {
    Policy::offloading(name, saved, offloaded, kinds).map_err(placed)
}

/// # Errors
/// A length below 1.
pub(crate) fn segment_length(k: i64) -> Result<usize, Fault> {
    usize::try_from(k).ok().filter(|&k| k > 0).ok_or_else(|| {
        let message = format!("a segment of {k} functions");
        placed(Fault::new(FaultKind::Argument, "checkpoint_segments", message))
            .help("a segment has at least 1; longer ones keep fewer boundaries")
    })
}

pub(crate) fn stop_gradient(x: Input) -> Result<Array, Fault> {
    let dtype = x.dtype();
    eager::apply("stop_gradient", &STOP_GRADIENT, Params::new(), &[x], &[dtype])
}

/// # Errors
/// A name that a policy's text could not hold.
pub(crate) fn checkpoint_name(x: Input, name: &str) -> Result<Array, Fault> {
    let plain = |c: char| c.is_alphanumeric() || "_-. /".contains(c);
    if name.trim() != name || name.is_empty() || !name.chars().all(plain) {
        let message = format!("{name:?} is no name");
        return Err(placed(Fault::new(FaultKind::Argument, "checkpoint_name", message))
            .help("a name has letters, digits, `_`, `-`, `.`, `/` and inner spaces"));
    }
    let dtype = x.dtype();
    let params = Params::new().with("name", Param::Text(name.to_string()));
    eager::apply("checkpoint_name", &CHECKPOINT_NAME, params, &[x], &[dtype])
}

fn check_names(policy: &Policy, func: &Func) -> Result<(), Fault> {
    let given = vramlab_transform::names(func);
    let Some(unknown) = policy.names().find(|name| !given.contains(name)) else {
        return Ok(());
    };
    let message = format!("{policy}: no checkpoint_name in the function gives {unknown:?}");
    let help = match given.is_empty() {
        true => "name a value: checkpoint_name(&h, \"h\")".to_string(),
        false => format!("the names there are: {}", given.join(", ")),
    };
    Err(placed(Fault::new(FaultKind::Argument, "checkpoint", message)).help(help))
}

/// The parts of a function with a gradient of its own.
pub(crate) struct Custom<'a> {
    pub func: Body<'a>,
    /// The result and behind it what is kept.
    pub forward: Body<'a>,
    /// What was kept and the result's cotangent to the arguments' cotangents.
    pub backward: Body<'a>,
}

/// The function's result, inside a trace with the gradient rule beside it.
///
/// # Errors
/// A fault of one of the functions, or a rule whose types do not meet.
pub(crate) fn custom_vjp(custom: &Custom, arguments: &[Array]) -> Result<Results, Fault> {
    if !trace::active() {
        return (custom.func)(arguments);
    }
    let types: Vec<Type> = arguments.iter().map(|a| a.ty().clone()).collect();
    let (func, structure) = trace::run("f", &types, custom.func)?;
    let (forward, _) = trace::run("forward", &types, custom.forward)?;
    let results = func.func.results.len();
    let all = forward.func.result_types();
    let Some((own, kept)) = all.split_at_checked(results) else {
        return Err(rule_fault("forward gives fewer arrays than the function".into()));
    };
    if own != func.func.result_types() {
        return Err(rule_fault("forward does not give the function's result first".into()));
    }
    let takes: Vec<Type> = kept.iter().chain(own).cloned().collect();
    let (backward, _) = trace::run("backward", &takes, custom.backward)?;
    if backward.func.result_types() != types {
        let shown =
            |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<String>>().join(", ");
        let (gives, wanted) = (shown(&backward.func.result_types()), shown(&types));
        return Err(rule_fault(format!(
            "backward gives ({gives}), and the arguments are ({wanted})"
        )));
    }
    let captured = [&func.captured, &forward.captured, &backward.captured];
    let inputs: Vec<Array> =
        arguments.iter().chain(captured.into_iter().flatten()).map(Array::alias).collect();
    let behind = captured.map(|arrays| arrays.iter().map(|a| a.ty().clone()).collect());
    let rule = Rule { own: types.len(), behind };
    let params = Params::new()
        .with("func", Param::Func(rule.function(&func.func)))
        .with("forward", Param::Func(rule.forward(&forward.func)))
        .with("backward", Param::Func(rule.backward(&backward.func, kept.len())))
        .with("given", Param::Int(types.len() as i64));
    Ok((trace::held(&CUSTOM_VJP, params, &inputs)?, structure))
}

fn rule_fault(message: String) -> Fault {
    placed(Fault::new(FaultKind::Argument, "custom_vjp", message)).help(
        "forward gives the result and behind it what backward needs; backward takes that and the \
         result's cotangent, and gives one cotangent an argument",
    )
}

/// Brings the three functions to the same parameters: the arguments, then what each captured.
struct Rule {
    /// How many arguments there are.
    own: usize,
    /// What function, forward and backward captured.
    behind: [Vec<Type>; 3],
}

fn fresh(func: &mut Func, types: &[Type]) -> Vec<Value> {
    let first = func.types.len() as u32;
    func.types.extend(types.iter().cloned());
    (first..func.types.len() as u32).map(Value).collect()
}

impl Rule {
    fn function(&self, func: &Func) -> Arc<Func> {
        let mut func = func.clone();
        for other in [1, 2] {
            let unread = fresh(&mut func, &self.behind[other]);
            func.params.extend(unread);
        }
        Arc::new(func)
    }

    /// Also gives what backward captured, as more that is kept.
    fn forward(&self, func: &Func) -> Arc<Func> {
        let mut func = func.clone();
        let captured = func.params.split_off(self.own);
        let unread = fresh(&mut func, &self.behind[0]);
        let passed = fresh(&mut func, &self.behind[2]);
        func.params.extend(unread.into_iter().chain(captured).chain(passed.iter().copied()));
        func.results.extend(passed);
        Arc::new(func)
    }

    /// What it captured stands with what was kept, before the cotangents.
    fn backward(&self, func: &Func, kept: usize) -> Arc<Func> {
        let mut func = func.clone();
        let count = func.params.len() - self.behind[2].len();
        let captured = func.params.split_off(count);
        let cotangents = func.params.split_off(kept);
        func.params.extend(captured.into_iter().chain(cotangents));
        Arc::new(func)
    }
}

/// As [`jacobian`] in forward mode: one pass forward, batched over the argument's elements.
///
/// # Errors
/// As [`jacobian`].
pub(crate) fn jacfwd(body: Body, arguments: &[Array]) -> Result<Array, Fault> {
    let traced = traced("jacfwd", Function { body, arg_names: &[] }, arguments)?;
    let func = vramlab_transform::jacfwd(&traced.func).map_err(|fault| refused("jacfwd", fault))?;
    Ok(run(&func, &traced.given(arguments), &Names::new())?.remove(0))
}

/// The derivative of the gradient, forward over reverse: the first argument's axes twice.
///
/// # Errors
/// As [`value_and_grad`].
pub(crate) fn hessian(body: Body, arguments: &[Array]) -> Result<Array, Fault> {
    let traced = traced("hessian", Function { body, arg_names: &[] }, arguments)?;
    let gradient = vramlab_transform::value_and_grad(&traced.func, &[0])
        .map_err(|fault| refused("hessian", fault))?;
    let func = vramlab_transform::jacfwd(&gradient.cotangents_only().func)
        .map_err(|fault| refused("hessian", fault))?;
    Ok(run(&func, &traced.given(arguments), &Names::new())?.remove(0))
}

/// What the gradient by every float among the first `count` arguments keeps from the forward, as a
/// table.
///
/// # Errors
/// As [`value_and_grad`], but the result may have any shape.
pub(crate) fn residuals<'a>(
    f: impl Into<Function<'a>>,
    arguments: &[Array],
    count: usize,
) -> Result<String, Fault> {
    let traced = traced("residuals", f.into(), arguments)?;
    let floats: Vec<usize> = (0..count).filter(|&at| arguments[at].ty().dtype.is_float()).collect();
    let joint = vramlab_transform::vjp(&traced.func, &floats)
        .map_err(|fault| refused("residuals", fault))?;
    Ok(vramlab_transform::residual_table(&joint, arguments.len(), origin().cell))
}

/// The function for every example at once: each of the `mapped` arguments has one more leading axis,
/// and so has every result.
///
/// # Errors
/// A fault of the function, a mapped argument without axes, batches of different sizes.
pub(crate) fn vmap<'a>(
    name: &'static str,
    f: impl Into<Function<'a>>,
    arguments: &[Array],
    mapped: Option<&[i64]>,
) -> Result<Results, Fault> {
    let mapped = match mapped {
        Some(mapped) => positions(name, mapped, arguments.len())?,
        None => (0..arguments.len()).collect(),
    };
    let f = f.into();
    let refuse = |message: String, help: &str| {
        Err(placed(Fault::new(FaultKind::Shape, name, message)).help(help))
    };
    let mut types: Vec<Type> = arguments.iter().map(|a| a.ty().clone()).collect();
    let mut size: Option<(usize, usize)> = None;
    for &at in &mapped {
        let Some(extent) = types[at].shape.first().copied() else {
            let (given, own) = (f.arg_name(at), &types[at]);
            return refuse(
                format!("{given} is {own}, which has no axis to map over"),
                match f.arg_names.is_empty() {
                    true => "vmap_wrt maps over some of the arguments; the others are shared",
                    false => {
                        "vmap_tree_wrt maps over some of the leaves and arrays; the others are shared"
                    }
                },
            );
        };
        match size {
            Some((first, size)) if size != extent => {
                let message = match f.arg_names.is_empty() {
                    true => format!("arguments {first} and {at} have {size} and {extent} examples"),
                    false => {
                        let (first, at) = (f.arg_name(first), f.arg_name(at));
                        format!("{first} and {at} have {size} and {extent} examples")
                    }
                };
                return refuse(message, "the leading axes of mapped arguments are of one extent");
            }
            _ => size = Some((at, extent)),
        }
        types[at] = Type::new(types[at].dtype, types[at].shape[1..].to_vec());
    }
    let Some((_, size)) = size else {
        return refuse("no argument is mapped".into(), "name at least one, or call the function");
    };
    let (Finished { func, captured }, structure) =
        trace::run_named("f", &types, f.arg_names.to_vec(), f.body)?;
    let batched: Vec<bool> =
        (0..func.params.len()).map(|at| at < arguments.len() && mapped.contains(&at)).collect();
    let func =
        vramlab_transform::vmap(&func, &batched, size).map_err(|fault| refused(name, fault))?;
    let given: Vec<Array> = arguments.iter().chain(&captured).map(Array::alias).collect();
    Ok((run(&func, &given, &Names::new())?, structure))
}
