//! Entries of the surface table for functions of a tree of parameters and arrays.

use crate::array::Array;
use crate::decode::Decoder;
use crate::jit::JitCore;
use crate::prelude_items::{
    DynJit, Takes, analysed, analysed_of, called, explained, held, limited, lowered, offered,
    rebuild,
};
use crate::structure::Structure;
use crate::surface::{Callable, Dyn, Item, Place};
use crate::tree_functions::{self, Given, Held, Mapped, SharedBody, value_and_grad};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use vramlab_ir::{Fault, FaultKind};
use vramlab_transform::Policy;

/// What a function does with its tree and its arrays.
type Run = Box<dyn Fn(&Given) -> Result<Dyn, Fault> + Send + Sync>;

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
        let arrays = decoder.arrays()?;
        decoder.end()?;
        (self.run)(&Given { tree: &tree, arrays: &arrays })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn function(
    name: &'static str,
    run: impl Fn(&Given) -> Result<Dyn, Fault> + Send + Sync + 'static,
) -> Dyn {
    Dyn::Function(Arc::new(OfTree { name, run: Box::new(run) }))
}

pub(crate) fn value(structure: &Structure, arrays: Vec<Array>) -> Dyn {
    rebuild(structure, &mut arrays.into_iter())
}

fn traceable(f: Arc<dyn Callable>) -> SharedBody {
    Arc::new(move |structure: &Structure, arrays: &[Array]| {
        let mut all = arrays.iter().map(Array::alias);
        let tree = rebuild(structure, &mut all);
        let others = all.map(Dyn::Borrowed).collect();
        held(f.call(vec![Dyn::Reference(Box::new(tree)), Dyn::List(others)])?)
    })
}

/// The one argument, a function of a tree and a list of arrays.
fn alone(name: &'static str, arguments: Vec<Dyn>) -> Result<SharedBody, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let f = decoder.function()?;
    decoder.end()?;
    Ok(traceable(f))
}

fn jitted(name: &'static str, takes: Takes, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let body = alone(name, arguments)?;
    let core = JitCore::of_tree(name, move |structure: &Structure, arrays: &[Array]| {
        body(structure, arrays)
    });
    Ok(Dyn::Function(Arc::new(DynJit::new(core, takes))))
}

/// A function, a tree and arrays, as `vjp_tree` and its like take them.
fn applied(decoder: &mut Decoder) -> Result<(SharedBody, Held, Vec<Array>), Fault> {
    let f = decoder.function()?;
    let tree = held(decoder.next()?)?;
    let arrays = decoder.arrays()?;
    Ok((traceable(f), tree, arrays))
}

fn pulled_back(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new("vjp_tree", arguments);
    let (body, tree, arrays) = applied(&mut decoder)?;
    decoder.end()?;
    let (made, pullback) = tree_functions::vjp(&*body, &Given { tree: &tree, arrays: &arrays })?;
    let structure = tree.1;
    let back = crate::gradient_items::function("vjp_tree", move |cotangents| match cotangents {
        [cotangent] => Ok(value(&structure, pullback.call(cotangent)?)),
        _ => Err(crate::jit::wrong_count(1, cotangents.len())),
    });
    Ok(Dyn::Tuple(vec![Dyn::Array(made), back]))
}

fn pushed_forward(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new("jvp_tree", arguments);
    let (body, tree, arrays) = applied(&mut decoder)?;
    let tangents = held(decoder.next()?)?;
    decoder.end()?;
    let given = Given { tree: &tree, arrays: &arrays };
    let (made, tangent) = tree_functions::jvp(&*body, &given, &tangents)?;
    Ok(Dyn::Tuple(vec![Dyn::Array(made), Dyn::Array(tangent)]))
}

fn checkpointed(name: &'static str, policy: Policy, body: SharedBody) -> Dyn {
    function(name, move |given| {
        let (arrays, structure) = tree_functions::checkpoint(&policy, &*body, given)?;
        Ok(value(&structure, arrays))
    })
}

fn mapped(name: &'static str, mapped: Option<Mapped>, body: SharedBody) -> Dyn {
    function(name, move |given| {
        let (arrays, structure) = tree_functions::vmap(name, mapped.as_ref(), &*body, given)?;
        Ok(value(&structure, arrays))
    })
}

/// The methods that both kinds of jitted functions have.
macro_rules! methods {
    ($class:literal, $made:literal, $receiver:literal) => {
        [
            Item {
                name: "call",
                place: Place::Method($class),
                signature: concat!("fn call(&self, tree: ", $receiver, ", arrays: impl Arguments<N>) -> Out"),
                doc: "Calls with the tree, and with moved or borrowed arrays in an array, a tuple or a Vec. \
                      What is moved may be reused; it is gone afterwards.",
                example: $made,
                call: called,
            },
            Item {
                name: "memory_limit",
                place: Place::Method($class),
                signature: concat!("fn memory_limit(self, limit: &str) -> ", $class, "<P, N, Out>"),
                doc: "The same function under a limit of what a call holds at its peak, arguments and \
                      results included: where it would be above, values are computed again, or the least \
                      peak is named.",
                example: $made,
                call: limited,
            },
            Item {
                name: "memory_analysis",
                place: Place::Method($class),
                signature: "fn memory_analysis(&self) -> MemoryAnalysis",
                doc: "Bytes of the last call's executable, under JAX's names.",
                example: $made,
                call: analysed,
            },
            Item {
                name: "memory_analysis_of",
                place: Place::Method($class),
                signature: "fn memory_analysis_of(&self, tree: &P, arrays: impl Arguments<N>) -> MemoryAnalysis",
                doc: "Bytes of what a call with this tree and these arrays would run, under JAX's names; \
                      nothing runs, and the tree stays.",
                example: $made,
                call: analysed_of,
            },
            Item {
                name: "explain",
                place: Place::Method($class),
                signature: "fn explain(&self) -> String",
                doc: "The last call's way through the compiler, stage by stage.",
                example: $made,
                call: explained,
            },
            Item {
                name: "lower",
                place: Place::Method($class),
                signature: "fn lower(&self, tree: &P, arrays: impl Arguments<N>) -> String",
                doc: "What a call with this tree and these arrays would run, as text; nothing runs.",
                example: $made,
                call: lowered,
            },
            Item {
                name: "donations",
                place: Place::Method($class),
                signature: "fn donations(&self, tree: &P, arrays: impl Arguments<N>) -> String",
                doc: "Lists each leaf by its path, and of a JitTree each array: whether its buffer would be \
                      reused if it were moved in, or why not; nothing runs. A JitUpdate takes its leaves, and \
                      borrows arrays.",
                example: $made,
                call: offered,
            },
        ]
    };
}

pub(crate) static JIT_TREE: &[Item] = &methods!(
    "JitTree",
    "let f = jit_tree(|p: &(Array, Array), [x]| x.dot(&p.0) + &p.1).memory_limit(\"1MiB\");\n\
     let p = (ones([3, 2]), zeros([2]));\nlet y = f.call(&p, (&ones([4, 3]),));\n\
     let bytes = f.memory_analysis().temp_size_in_bytes;\n\
     let others = f.memory_analysis_of(&p, [&ones([5, 3])]).peak_memory_in_bytes;\n\
     println!(\"{}\", f.donations(&p, [&ones([4, 3])]));\n\
     let texts = (f.lower(&p, [&ones([4, 3])]).len() > 0, f.explain().len() > 0);\ny",
    "&P"
);

pub(crate) static JIT_UPDATE: &[Item] = &methods!(
    "JitUpdate",
    "let step = jit_update(|w: &Array, [g]| w - g * 0.1).memory_limit(\"1MiB\");\n\
     let w = ones([3]);\nprintln!(\"{}\", step.donations(&w, [&ones([3])]));\n\
     let others = step.memory_analysis_of(&w, [&ones([3])]).peak_memory_in_bytes;\n\
     let text = step.lower(&w, [&ones([3])]).len() > 0;\n\
     let w = step.call(w, (&ones([3]),));\nlet bytes = step.memory_analysis().temp_size_in_bytes;\n\
     let said = step.explain().len() > 0;\nw",
    "P"
);

pub(crate) static TREES: &[Item] = &[
    Item {
        name: "jit_tree",
        place: Place::Function,
        signature: "fn jit_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> JitTree<P, N, Out>",
        doc: "A jitted function of a tree of parameters and arrays, which borrows the tree.",
        example: "let f = jit_tree(|p: &(Array, Array), [x]| x.dot(&p.0) + &p.1);\n\
                  f(&(ones([3, 2]), zeros([2])), [&ones([4, 3])])",
        call: |arguments| jitted("jit_tree", Takes::Tree, arguments),
    },
    Item {
        name: "jit_update",
        place: Place::Function,
        signature: "fn jit_update<P: Tree + 'static, const N: usize, Out: Tree + 'static>(f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> JitUpdate<P, N, Out>",
        doc: "A jitted function of a tree of parameters and arrays that is called with the tree by \
              value: its buffers are reused for the results.",
        example: "let step = jit_update(|w: &Array, [g]| w - g * 0.1);\nlet w = ones([3]);\n\
                  let w = step(w, [&ones([3])]);\nw",
        call: |arguments| jitted("jit_update", Takes::OwnTree, arguments),
    },
    Item {
        name: "value_and_grad_tree",
        place: Place::Function,
        signature: "fn value_and_grad_tree<P: Tree + 'static, const N: usize>(f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> (Array, P)>",
        doc: "The value and the gradient by a tree of parameters, in its structure.",
        example: "let g = value_and_grad_tree(|p: &(Array, Array), [x]| (x * &p.0 + &p.1).sum());\n\
                  let (l, (dw, db)) = g(&(ones([3]), zeros([3])), [&full([3], 2.0)]);\ndw",
        call: |arguments| {
            let name = "value_and_grad_tree";
            let body = alone(name, arguments)?;
            Ok(function(name, move |given| {
                let (loss, grads) = value_and_grad(name, &*body, given)?;
                Ok(Dyn::Tuple(vec![Dyn::Array(loss), value(&given.tree.1, grads)]))
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
            let body = alone("grad_tree", arguments)?;
            Ok(function("grad_tree", move |given| {
                let (_, grads) = value_and_grad("grad_tree", &*body, given)?;
                Ok(value(&given.tree.1, grads))
            }))
        },
    },
    Item {
        name: "vjp_tree",
        place: Place::Function,
        signature: "fn vjp_tree<P: Tree + Send + Sync + 'static, const N: usize>(f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync, tree: &P, arrays: [&Array; N]) -> (Array, Boxed<1, P>)",
        doc: "The value, and the function from its cotangent to the tree's cotangents.",
        example: "let p = (ones([3]), zeros([3]));\n\
                  let (y, back) = vjp_tree(|p: &(Array, Array), [x]| x * &p.0 + &p.1, &p, [&full([3], 2.0)]);\n\
                  let (dw, db) = back([&ones([3])]);\ndw",
        call: pulled_back,
    },
    Item {
        name: "jvp_tree",
        place: Place::Function,
        signature: "fn jvp_tree<P: Tree, const N: usize>(f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync, tree: &P, arrays: [&Array; N], tangents: &P) -> (Array, Array)",
        doc: "The value, and its derivative along tangents of the tree.",
        example: "let p = (ones([3]), zeros([3]));\n\
                  let (y, dy) = jvp_tree(|p: &(Array, Array), [x]| x * &p.0 + &p.1, &p, [&full([3], 2.0)], &p);\ndy",
        call: pushed_forward,
    },
    Item {
        name: "residuals_tree",
        place: Place::Function,
        signature: "fn residuals_tree<P: Tree, const N: usize>(f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync, tree: &P, arrays: [&Array; N]) -> String",
        doc: "What the gradient by a tree keeps from the forward, leaves by their paths: shapes, bytes, \
              where it was made, and whose gradient wants it.",
        example: "let p = (ones([3]), zeros([3]));\n\
                  print!(\"{}\", residuals_tree(|p: &(Array, Array), [x]| (x * &p.0 + &p.1).tanh().sum(), &p, [&ones([3])]));",
        call: |arguments| {
            let mut decoder = Decoder::new("residuals_tree", arguments);
            let (body, tree, arrays) = applied(&mut decoder)?;
            decoder.end()?;
            let given = Given { tree: &tree, arrays: &arrays };
            tree_functions::residuals(&*body, &given).map(|text| Dyn::Text(text.into()))
        },
    },
    Item {
        name: "checkpoint_tree",
        place: Place::Function,
        signature: "fn checkpoint_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> Out>",
        doc: "The function of a tree; its gradient keeps the leaves and arrays only and computes the rest \
              again.",
        example: "let f = checkpoint_tree(|p: &(Array, Array), [x]| (x * &p.0 + &p.1).tanh());\n\
                  let g = grad_tree(move |p: &(Array, Array), x: [&Array; 1]| f(p, x).sum());\n\
                  let (dw, db) = g(&(ones([3]), zeros([3])), [&full([3], 2.0)]);\ndw",
        call: |arguments| {
            let body = alone("checkpoint_tree", arguments)?;
            Ok(checkpointed("checkpoint_tree", Policy::Nothing, body))
        },
    },
    Item {
        name: "checkpoint_tree_with",
        place: Place::Function,
        signature: "fn checkpoint_tree_with<P: Tree + 'static, const N: usize, Out: Tree + 'static>(policy: Policy, f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> Out>",
        doc: "The function of a tree; its gradient keeps the leaves and arrays and what the policy saves.",
        example: "let f = checkpoint_tree_with(dots_saveable(), |w: &Array, [x]| x.dot(w).tanh());\n\
                  let g = grad_tree(move |w: &Array, x: [&Array; 1]| f(w, x).sum());\ng(&ones([3]), [&ones([2, 3])])",
        call: |arguments| {
            let mut decoder = Decoder::new("checkpoint_tree_with", arguments);
            let policy = Policy::parse(&decoder.text()?)?;
            let f = decoder.function()?;
            decoder.end()?;
            Ok(checkpointed("checkpoint_tree_with", policy, traceable(f)))
        },
    },
    Item {
        name: "vmap_tree",
        place: Place::Function,
        signature: "fn vmap_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> Out>",
        doc: "The function for every example at once: each array has one more leading axis, and so has \
              every result; the tree is the same for all.",
        example: "let f = vmap_tree(|p: &(Array, Array), [x]| (x * &p.0 + &p.1).sum());\n\
                  f(&(ones([3]), zeros([3])), [&ones([4, 3])])",
        call: |arguments| Ok(mapped("vmap_tree", None, alone("vmap_tree", arguments)?)),
    },
    Item {
        name: "vmap_tree_wrt",
        place: Place::Function,
        signature: "fn vmap_tree_wrt<P: Tree + 'static, const K: usize, const M: usize, const N: usize, Out: Tree + 'static>(leaves: [&str; K], mapped: [i32; M], f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static) -> Box<dyn Fn(&P, [&Array; N]) -> Out>",
        doc: "As vmap_tree over the leaves under these paths (\"params\" is all of them) and the arrays at \
              these positions; the others are the same for all examples.",
        example: "let f = vmap_tree_wrt([\"params.0\"], [0], |p: &(Array, Array), [x]| (x * &p.0 + &p.1).sum());\n\
                  f(&(ones([4, 3]), zeros([3])), [&ones([4, 3])])",
        call: |arguments| {
            let mut decoder = Decoder::new("vmap_tree_wrt", arguments);
            let (leaves, arrays) = (decoder.texts()?, decoder.integers()?);
            let f = decoder.function()?;
            decoder.end()?;
            if leaves.is_empty() && arrays.is_empty() {
                let message = "names no leaf and no array";
                return Err(Fault::new(FaultKind::Argument, "vmap_tree_wrt", message));
            }
            Ok(mapped("vmap_tree_wrt", Some(Mapped { leaves, arrays }), traceable(f)))
        },
    },
];
