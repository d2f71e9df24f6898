//! Entries of the surface table for training.

use crate::decode::Decoder;
use crate::operand::Operand;
use crate::prelude_items::held;
use crate::surface::{Dyn, Item, Place};
use crate::training::{self, Leaves, State};
use crate::tree_functions::Held;
use crate::tree_items::value;
use vramlab_ir::Fault;

fn leaves((arrays, structure): &Held) -> Leaves<'_> {
    Leaves { structure: structure.clone(), arrays: arrays.iter().collect() }
}

fn adam(name: &'static str, decays: bool, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let (params, grads) = (held(decoder.next()?)?, held(decoder.next()?)?);
    let [mean, square, count] = <[Dyn; 3]>::try_from(decoder.items()?).map_err(|_| {
        let message = "the state is what adam_init gives: two trees and a count";
        Fault::new(vramlab_ir::FaultKind::Argument, name, message)
    })?;
    let (mean, square, count) = (held(mean)?, held(square)?, held(count)?);
    let rate = decoder.operand()?;
    let decay = if decays { Some(decoder.float()?) } else { None };
    decoder.end()?;
    let count = count.0.first().ok_or_else(|| count.1.changed())?;
    let state = State { mean: leaves(&mean), square: leaves(&square), count };
    let own = leaves(&params);
    let stepped = training::adam_step(name, &own, &leaves(&grads), &state, rate.input(), decay)?;
    let tree = |arrays| value(&own.structure, arrays);
    let state = vec![tree(stepped.mean), tree(stepped.square), Dyn::Array(stepped.count)];
    Ok(Dyn::Tuple(vec![tree(stepped.params), Dyn::Tuple(state)]))
}

pub(crate) static TRAINING: &[Item] = &[
    Item {
        name: "sgd",
        place: Place::Function,
        signature: "fn sgd<P: Tree>(params: &P, grads: &P, lr: impl Operand) -> P",
        doc: "One step of gradient descent over a tree: p - lr · g. As an array of shape () the \
              learning rate is an argument of a jitted step.",
        example: "sgd(&ones([3]), &full([3], 2.0), 0.1)",
        call: |arguments| {
            let mut decoder = Decoder::new("sgd", arguments);
            let (params, grads) = (held(decoder.next()?)?, held(decoder.next()?)?);
            let rate = decoder.operand()?;
            decoder.end()?;
            let made = training::sgd_step(&leaves(&params), &leaves(&grads), rate.input())?;
            Ok(value(&params.1, made))
        },
    },
    Item {
        name: "adam_init",
        place: Place::Function,
        signature: "fn adam_init<P: Tree>(params: &P) -> (P, P, Array)",
        doc: "Adam's state before the first step: zeros for the means of gradients and of their \
              squares, and the number of steps.",
        example: "let (m, v, count) = adam_init(&ones([3]));\ncount",
        call: |arguments| {
            let mut decoder = Decoder::new("adam_init", arguments);
            let params = held(decoder.next()?)?;
            decoder.end()?;
            let (mean, square, count) = training::adam_start(&leaves(&params))?;
            let tree = |arrays| value(&params.1, arrays);
            Ok(Dyn::Tuple(vec![tree(mean), tree(square), Dyn::Array(count)]))
        },
    },
    Item {
        name: "adam",
        place: Place::Function,
        signature: "fn adam<P: Tree>(params: &P, grads: &P, state: &(P, P, Array), lr: impl Operand) -> (P, (P, P, Array))",
        doc: "One step of Adam over a tree (b1 0.9, b2 0.999, epsilon 1e-8): the parameters and the \
              state after it.",
        example: "let w = ones([3]);\nlet state = adam_init(&w);\n\
                  let (w, state) = adam(&w, &full([3], 2.0), &state, 0.1);\nw",
        call: |arguments| adam("adam", false, arguments),
    },
    Item {
        name: "adamw",
        place: Place::Function,
        signature: "fn adamw<P: Tree>(params: &P, grads: &P, state: &(P, P, Array), lr: impl Operand, decay: f64) -> (P, (P, P, Array))",
        doc: "One step of AdamW: as adam, and lr · decay · p less.",
        example: "let w = ones([3]);\nlet state = adam_init(&w);\n\
                  let (w, state) = adamw(&w, &full([3], 2.0), &state, 0.1, 0.01);\nw",
        call: |arguments| adam("adamw", true, arguments),
    },
    Item {
        name: "cross_entropy",
        place: Place::Function,
        signature: "fn cross_entropy(logits: impl Operand, labels: impl Operand) -> Array",
        doc: "The mean of -log softmax(logits)[label] by the last axis, over integer labels; a label \
              that is no class counts 0.",
        example: "cross_entropy(&zeros([2, 4]), &array([1, 3]))",
        call: |arguments| {
            let mut decoder = Decoder::new("cross_entropy", arguments);
            let (logits, labels) = (decoder.operand()?, decoder.operand()?);
            decoder.end()?;
            training::cross_entropy_of(logits.input(), labels.input()).map(Dyn::Array)
        },
    },
    Item {
        name: "progress",
        place: Place::Function,
        signature: "fn progress(done: impl Extent, total: impl Extent, text: &str)",
        doc: "A line on standard output that shows how far a loop is, written over itself.",
        example: "progress(3, 3, \"loss 0.1\");",
        call: |arguments| {
            let mut decoder = Decoder::new("progress", arguments);
            let (done, total) = (decoder.int()?, decoder.int()?);
            let text = decoder.text()?;
            decoder.end()?;
            training::show_progress(done, total, &text);
            Ok(Dyn::Unit)
        },
    },
];
