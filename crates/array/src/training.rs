//! What training needs beside gradients: optimisers over trees, a loss, a progress bar. Composites
//! only, by the formulas of JAX's optax.

use crate::ambient::placed;
use crate::array::Array;
use crate::composite::log_softmax;
use crate::create::{array_of, full_as, iota, zeros_like};
use crate::elementwise::{binary, convert, select, unary};
use crate::host::host;
use crate::jit::unflatten;
use crate::layout;
use crate::operand::{Input, Number, Operand};
use crate::raise::or_raise;
use crate::reduce::{mean, reduce};
use crate::shape_arguments::{Extent, shape};
use crate::structure::Structure;
use crate::trace;
use crate::tree::Tree;
use vramlab_ir::{DType, Fault, FaultKind};
use vramlab_ops::{ADD, DIV, EQ, MUL, NEG, POW, SQRT, SQUARE, SUB, SUM};

/// Decay of Adam's mean of gradients and of their squares, and what keeps its division finite: the
/// values of Adam's paper, which JAX and PyTorch have too.
const B1: f64 = 0.9;
const B2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

fn number(value: f64) -> Input<'static> {
    Input::Number(Number::Float(value))
}

/// A tree that is only read.
pub(crate) struct Leaves<'a> {
    pub structure: Structure,
    pub arrays: Vec<&'a Array>,
}

impl<'a> Leaves<'a> {
    fn of(tree: &'a impl Tree) -> Leaves<'a> {
        let mut arrays = Vec::new();
        tree.leaves(&mut arrays);
        Leaves { structure: tree.structure(), arrays }
    }
}

/// Adam's state: both means in the structure of the parameters, and the number of steps (i32).
pub(crate) struct State<'a> {
    pub mean: Leaves<'a>,
    pub square: Leaves<'a>,
    pub count: &'a Array,
}

/// The parameters after a step; their means, and the number of steps.
pub(crate) struct Stepped {
    pub params: Vec<Array>,
    pub mean: Vec<Array>,
    pub square: Vec<Array>,
    pub count: Array,
}

/// Both trees have the same arrays in the same places.
fn same(op: &'static str, what: &str, params: &Leaves, other: &Leaves) -> Result<(), Fault> {
    if let Some(difference) = params.structure.difference(&other.structure, "params") {
        let message = format!("params and {what} differ: {difference}");
        return Err(placed(Fault::new(FaultKind::Argument, op, message)));
    }
    let types = params.arrays.iter().zip(&other.arrays);
    let Some(at) = types.into_iter().position(|(a, b)| a.ty() != b.ty()) else { return Ok(()) };
    let path = params.structure.paths("").swap_remove(at);
    let (own, given) = (params.arrays[at].ty(), other.arrays[at].ty());
    let message = format!("params{path} is {own}, and {what}{path} is {given}");
    Err(placed(Fault::new(FaultKind::Shape, op, message)))
}

/// A learning rate for one parameter: as an array it takes the parameter's element type.
fn scaled(by: Input, x: &Array) -> Result<Array, Fault> {
    match by {
        Input::Array(rate) => {
            let rate = convert(rate.input(), x.dtype())?;
            binary(&MUL, x.input(), rate.input())
        }
        number => binary(&MUL, x.input(), number),
    }
}

/// # Errors
/// A rate that is no scalar.
fn check_rate(op: &'static str, rate: Input) -> Result<(), Fault> {
    match rate {
        Input::Array(array) if array.rank() > 0 => {
            let message = format!("the learning rate is {}", array.ty());
            Err(placed(Fault::new(FaultKind::Shape, op, message))
                .help("it is a number or an array of shape ()"))
        }
        _ => Ok(()),
    }
}

/// `p - lr g`, leaf by leaf.
pub(crate) fn sgd_step(params: &Leaves, grads: &Leaves, rate: Input) -> Result<Vec<Array>, Fault> {
    same("sgd", "grads", params, grads)?;
    check_rate("sgd", rate)?;
    let pairs = params.arrays.iter().zip(&grads.arrays);
    pairs.map(|(p, g)| binary(&SUB, p.input(), scaled(rate, g)?.input())).collect()
}

/// Adam's state before the first step.
pub(crate) fn adam_start(params: &Leaves) -> Result<(Vec<Array>, Vec<Array>, Array), Fault> {
    let zeros = || params.arrays.iter().map(|leaf| zeros_like(leaf.input())).collect();
    let zeros: [Result<Vec<Array>, Fault>; 2] = [zeros(), zeros()];
    let [mean, square] = zeros;
    Ok((mean?, square?, full_as(DType::I32, &[], Number::Int(0))?))
}

/// The running mean `b old + (1 - b) new`.
fn running(decay: f64, old: &Array, new: &Array) -> Result<Array, Fault> {
    let old = binary(&MUL, old.input(), number(decay))?;
    let new = binary(&MUL, new.input(), number(1.0 - decay))?;
    binary(&ADD, old.input(), new.input())
}

/// A running mean that began at 0, over the weight that it has by now: `1 - decay^count`.
fn corrected(decay: f64, mean: &Array, count: &Array) -> Result<Array, Fault> {
    let count = convert(count.input(), mean.dtype())?;
    let left = binary(&POW, number(decay), count.input())?;
    let weight = binary(&SUB, number(1.0), left.input())?;
    binary(&DIV, mean.input(), weight.input())
}

/// One step of Adam, with `decay` of AdamW: `p - lr (m̂ / (√v̂ + ε) + decay p)`.
pub(crate) fn adam_step(
    op: &'static str,
    params: &Leaves,
    grads: &Leaves,
    state: &State,
    rate: Input,
    decay: Option<f64>,
) -> Result<Stepped, Fault> {
    same(op, "grads", params, grads)?;
    same(op, "state.0", params, &state.mean)?;
    same(op, "state.1", params, &state.square)?;
    check_rate(op, rate)?;
    let count = binary(&ADD, state.count.input(), Input::Number(Number::Int(1)))?;
    let mut stepped = Stepped { params: vec![], mean: vec![], square: vec![], count };
    for (at, (p, g)) in params.arrays.iter().zip(&grads.arrays).enumerate() {
        let mean = running(B1, state.mean.arrays[at], g)?;
        let square = running(B2, state.square.arrays[at], &unary(&SQUARE, g.input())?)?;
        let root = unary(&SQRT, corrected(B2, &square, &stepped.count)?.input())?;
        let below = binary(&ADD, root.input(), number(EPSILON))?;
        let above = corrected(B1, &mean, &stepped.count)?;
        let mut step = binary(&DIV, above.input(), below.input())?;
        drop((root, below, above));
        if let Some(decay) = decay {
            let own = binary(&MUL, p.input(), number(decay))?;
            step = binary(&ADD, step.input(), own.input())?;
        }
        stepped.params.push(binary(&SUB, p.input(), scaled(rate, &step)?.input())?);
        stepped.mean.push(mean);
        stepped.square.push(square);
    }
    Ok(stepped)
}

/// The mean over all labels of `-log softmax(logits)[label]`, by the last axis.
pub(crate) fn cross_entropy_of(logits: Input, labels: Input) -> Result<Array, Fault> {
    let (logits, labels) = (array_of(logits)?, array_of(labels)?);
    let extents = &logits.ty().shape[..];
    if !labels.dtype().is_integer()
        || labels.ty().shape[..] != extents[..extents.len().max(1) - 1]
        || extents.is_empty()
    {
        let message = format!("logits are {}, and labels {}", logits.ty(), labels.ty());
        let fault = placed(Fault::new(FaultKind::Shape, "cross_entropy", message))
            .help("labels are integers, and logits have one more axis behind theirs: the classes");
        return Err(trace::naming(fault, &[logits.input(), labels.input()]));
    }
    let classes = extents[extents.len() - 1] as i64;
    let logs = log_softmax(logits.input(), -1)?;
    let classes = iota("cross_entropy", DType::I32, shape("cross_entropy", &[classes])?, 0)?;
    let column = layout::expand_dims(labels.input(), -1)?;
    let own = binary(&EQ, column.input(), classes.input())?;
    // A choice and not a product: the logarithm of an excluded class is -∞.
    let picked = select(own.input(), logs.input(), number(0.0))?;
    let axis = logits.rank() as i64 - 1;
    let picked = reduce(&SUM, picked.input(), Some(&[axis]), false)?;
    unary(&NEG, mean(picked.input(), None, false)?.input())
}

/// How many characters the bar of [`progress`] has.
const BAR: i64 = 24;

pub(crate) fn show_progress(done: i64, total: i64, text: &str) {
    let (total, done) = (total.max(1), done.clamp(0, total.max(1)));
    let full = (done as i128 * BAR as i128 / total as i128) as usize;
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR as usize - full));
    // The rest of the line is erased, since the text before may have been longer.
    let end = if done == total { "\n" } else { "" };
    host().stdout(&format!("\r{bar} {done}/{total} {text}\u{1b}[K{end}"));
}

/// One step of gradient descent: p - lr · g, array by array.
#[track_caller]
pub fn sgd<P: Tree>(params: &P, grads: &P, lr: impl Operand) -> P {
    let params = Leaves::of(params);
    let found = sgd_step(&params, &Leaves::of(grads), lr.input());
    or_raise(found.and_then(|arrays| unflatten((arrays, params.structure))))
}

/// Adam's state before the first step: two trees of zeros, and the number of steps.
#[track_caller]
pub fn adam_init<P: Tree>(params: &P) -> (P, P, Array) {
    let params = Leaves::of(params);
    or_raise(adam_start(&params).and_then(|(mean, square, count)| {
        let structure = params.structure;
        Ok((unflatten((mean, structure.clone()))?, unflatten((square, structure))?, count))
    }))
}

fn adam_of<P: Tree>(
    op: &'static str,
    params: &P,
    grads: &P,
    state: &(P, P, Array),
    rate: Input,
    decay: Option<f64>,
) -> Result<(P, (P, P, Array)), Fault> {
    let params = Leaves::of(params);
    let state = State { mean: Leaves::of(&state.0), square: Leaves::of(&state.1), count: &state.2 };
    let stepped = adam_step(op, &params, &Leaves::of(grads), &state, rate, decay)?;
    let tree = |arrays: Vec<Array>| unflatten((arrays, params.structure.clone()));
    let state = (tree(stepped.mean)?, tree(stepped.square)?, stepped.count);
    Ok((tree(stepped.params)?, state))
}

/// One step of Adam: the parameters and the state after it.
#[track_caller]
pub fn adam<P: Tree>(
    params: &P,
    grads: &P,
    state: &(P, P, Array),
    lr: impl Operand,
) -> (P, (P, P, Array)) {
    or_raise(adam_of("adam", params, grads, state, lr.input(), None))
}

/// One step of AdamW: Adam with weight decay beside the gradient.
#[track_caller]
pub fn adamw<P: Tree>(
    params: &P,
    grads: &P,
    state: &(P, P, Array),
    lr: impl Operand,
    decay: f64,
) -> (P, (P, P, Array)) {
    or_raise(adam_of("adamw", params, grads, state, lr.input(), Some(decay)))
}

/// The mean of -log softmax(logits)[label] over integer labels.
#[track_caller]
pub fn cross_entropy(logits: impl Operand, labels: impl Operand) -> Array {
    or_raise(cross_entropy_of(logits.input(), labels.input()))
}

/// A line that shows how far a loop is, written over itself.
pub fn progress(done: impl Extent, total: impl Extent, text: &str) {
    show_progress(done.extent(), total.extent(), text);
}
