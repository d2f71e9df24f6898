//! Entries of the surface table for trees of parameters and for training.

use crate::array::Array;
use crate::decode::Decoder;
use crate::operand::Operand;
use crate::prelude_items::{flatten, rebuild};
use crate::structure::Structure;
use crate::surface::{Callable, Dyn, Item, Place};
use crate::training::{self, Leaves, State};
use crate::tree_functions::{Held, TreeBody, TreeJit, value_and_grad};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use vramlab_ir::Fault;

/// What a function does with its tree and its arrays.
type Run = Box<dyn Fn(Held, &[Array]) -> Result<Dyn, Fault> + Send + Sync>;

/// A function of the instant tier: it takes a tree and one list of arrays.
struct OfTree {
    name: &'static str,
    run: Run,
}

impl fmt::Debug for OfTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(…)", self.name)
    }
}

impl Callable for OfTree {
    fn call(&self, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
        let mut decoder = Decoder::new(self.name, arguments);
        let tree = held(decoder.next()?)?;
        let others = decoder.arrays()?;
        decoder.end()?;
        (self.run)(tree, &others)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn held(tree: Dyn) -> Result<Held, Fault> {
    let mut arrays = Vec::new();
    let structure = flatten(tree, &mut arrays)?;
    Ok((arrays, structure))
}

fn value(structure: &Structure, arrays: Vec<Array>) -> Dyn {
    rebuild(structure, &mut arrays.into_iter())
}

/// The one argument, a function of a tree and a list of arrays.
fn body(name: &'static str, arguments: Vec<Dyn>) -> Result<TreeBody, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let f = decoder.function()?;
    decoder.end()?;
    Ok(Arc::new(move |structure, arrays| {
        let mut all = arrays.iter().map(Array::alias);
        let tree = rebuild(structure, &mut all);
        let others = all.map(Dyn::Borrowed).collect();
        held(f.call(vec![Dyn::Reference(Box::new(tree)), Dyn::List(others)])?)
    }))
}

fn function(
    name: &'static str,
    run: impl Fn(Held, &[Array]) -> Result<Dyn, Fault> + Send + Sync + 'static,
) -> Dyn {
    Dyn::Function(Arc::new(OfTree { name, run: Box::new(run) }))
}

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

pub(crate) static TREES: &[Item] = &[
    Item {
        name: "jit_tree",
        place: Place::Function,
        signature: "fn jit_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> Out>",
        doc: "A jitted function of a tree of parameters and arrays, which borrows the tree.",
        example: "let f = jit_tree(|p: &(Array, Array), [x]| x.dot(&p.0) + &p.1);\n\
                  f(&(ones([3, 2]), zeros([2])), [&ones([4, 3])])",
        call: |arguments| {
            let jitted = TreeJit::new("jit_tree", body("jit_tree", arguments)?);
            Ok(function("jit_tree", move |tree, others| {
                let (arrays, structure) = jitted.borrow(&tree, others)?;
                Ok(value(&structure, arrays))
            }))
        },
    },
    Item {
        name: "jit_update",
        place: Place::Function,
        signature: "fn jit_update<P: Tree + 'static, const N: usize, Out: Tree + 'static>(f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> Box<dyn Fn(P, [&Array; N]) -> Out>",
        doc: "A jitted function of a tree of parameters and arrays that is called with the tree by \
              value: its buffers are reused for the results.",
        example: "let step = jit_update(|w: &Array, [g]| w - g * 0.1);\nlet w = ones([3]);\n\
                  let w = step(w, [&ones([3])]);\nw",
        call: |arguments| {
            let jitted = TreeJit::new("jit_update", body("jit_update", arguments)?);
            Ok(function("jit_update", move |tree, others| {
                let (arrays, structure) = jitted.consume(tree, others)?;
                Ok(value(&structure, arrays))
            }))
        },
    },
    Item {
        name: "value_and_grad_tree",
        place: Place::Function,
        signature: "fn value_and_grad_tree<P: Tree + 'static, const N: usize>(f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> (Array, P)>",
        doc: "The value and the gradient by a tree of parameters, in its structure.",
        example: "let g = value_and_grad_tree(|p: &(Array, Array), [x]| (x * &p.0 + &p.1).sum());\n\
                  let (l, (dw, db)) = g(&(ones([3]), zeros([3])), [&full([3], 2.0)]);\ndw",
        call: |arguments| {
            let body = body("value_and_grad_tree", arguments)?;
            Ok(function("value_and_grad_tree", move |tree, others| {
                let name = "value_and_grad_tree";
                let (loss, grads) = value_and_grad(name, &body, &tree, others)?;
                Ok(Dyn::Tuple(vec![Dyn::Array(loss), value(&tree.1, grads)]))
            }))
        },
    },
    Item {
        name: "grad_tree",
        place: Place::Function,
        signature: "fn grad_tree<P: Tree + 'static, const N: usize>(f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> P>",
        doc: "The gradient by a tree of parameters, in its structure.",
        example: "let g = grad_tree(|p: &(Array, Array), [x]| (x * &p.0 + &p.1).sum());\n\
                  let (dw, db) = g(&(ones([3]), zeros([3])), [&full([3], 2.0)]);\ndw",
        call: |arguments| {
            let body = body("grad_tree", arguments)?;
            Ok(function("grad_tree", move |tree, others| {
                let (_, grads) = value_and_grad("grad_tree", &body, &tree, others)?;
                Ok(value(&tree.1, grads))
            }))
        },
    },
];

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
