//! Entries of the surface table for gradients and checkpoints.

use crate::array::Array;
use crate::decode::Decoder;
use crate::differentiate::{self, Custom};
use crate::operand::Operand;
use crate::prelude_items::{rebuild, traceable};
use crate::surface::{Callable, Dyn, Item, Place};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use vramlab_ir::{Fault, FaultKind};
use vramlab_transform::Policy;

/// What a transformed function does with its arrays.
type Run = Box<dyn Fn(&[Array]) -> Result<Dyn, Fault> + Send + Sync>;

/// A transformed function of the instant tier: it takes one list of arrays.
struct Transformed {
    name: &'static str,
    run: Run,
}

impl fmt::Debug for Transformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(…)", self.name)
    }
}

impl Callable for Transformed {
    fn call(&self, mut arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
        match (arguments.len(), arguments.pop()) {
            (1, Some(Dyn::List(items) | Dyn::Tuple(items))) => (self.run)(&arrays(&items)?),
            _ => {
                let message = "takes one list of arrays";
                Err(Fault::new(FaultKind::Argument, self.name, message))
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn arrays(items: &[Dyn]) -> Result<Vec<Array>, Fault> {
    items
        .iter()
        .map(|item| match item {
            Dyn::Array(array) | Dyn::Borrowed(array) => Ok(array.alias()),
            other => {
                let message = format!("takes arrays, not {}", other.kind_name());
                Err(Fault::new(FaultKind::Argument, "call", message))
            }
        })
        .collect()
}

pub(crate) fn function(
    name: &'static str,
    run: impl Fn(&[Array]) -> Result<Dyn, Fault> + Send + Sync + 'static,
) -> Dyn {
    Dyn::Function(Arc::new(Transformed { name, run: Box::new(run) }))
}

fn list(arrays: Vec<Array>) -> Dyn {
    Dyn::List(arrays.into_iter().map(Dyn::Array).collect())
}

fn first(mut arrays: Vec<Array>) -> Dyn {
    Dyn::Array(arrays.remove(0))
}

/// The one argument that is a function.
fn alone(name: &'static str, arguments: Vec<Dyn>) -> Result<Arc<dyn Callable>, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let f = decoder.function()?;
    decoder.end()?;
    Ok(f)
}

/// Positions and a function.
fn positioned(
    name: &'static str,
    arguments: Vec<Dyn>,
) -> Result<(Vec<i64>, Arc<dyn Callable>), Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let wrt = decoder.integers()?;
    let f = decoder.function()?;
    decoder.end()?;
    Ok((wrt, f))
}

/// The pair of value and aux, and the gradients.
fn with_aux(
    f: &dyn Callable,
    arguments: &[Array],
    wrt: &[i64],
) -> Result<(Dyn, Vec<Array>), Fault> {
    let body = |arrays: &[Array]| traceable(f, arrays);
    let (value, (aux, structure), gradients) =
        differentiate::value_and_grad_aux("value_and_grad_aux", &body, arguments, wrt)?;
    let aux = rebuild(&structure, &mut aux.into_iter());
    Ok((Dyn::Tuple(vec![Dyn::Array(value), aux]), gradients))
}

/// A policy is its text in the instant tier.
fn policy(decoder: &mut Decoder) -> Result<Policy, Fault> {
    Policy::parse(&decoder.text()?)
}

fn policy_value(name: &'static str, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    if name.contains("offload") {
        let mut names = || match name {
            "offload_dot_with_no_batch_dims" => Ok(Vec::new()),
            _ => decoder.texts(),
        };
        let (saved, offloaded) = (names()?, names()?);
        let (from, to) = (decoder.text()?, decoder.text()?);
        decoder.end()?;
        let policy = differentiate::offloading(name, saved, offloaded, [&from, &to])?;
        return Ok(Dyn::Text(policy.to_string().into()));
    }
    let takes = vramlab_transform::POLICIES.iter().any(|(own, takes, _)| *own == name && *takes);
    let names = if takes { decoder.texts()? } else { Vec::new() };
    decoder.end()?;
    Ok(Dyn::Text(Policy::named(name, names)?.to_string().into()))
}

fn checkpointed(name: &'static str, policy: Policy, f: Arc<dyn Callable>) -> Dyn {
    function(name, move |arguments| {
        let body = |arrays: &[Array]| traceable(&*f, arrays);
        let (results, structure) = differentiate::checkpoint(&policy, &body, arguments)?;
        Ok(rebuild(&structure, &mut results.into_iter()))
    })
}

fn mapped(name: &'static str, wrt: Option<Vec<i64>>, f: Arc<dyn Callable>) -> Dyn {
    function(name, move |arguments| {
        let body = |arrays: &[Array]| traceable(&*f, arrays);
        let (results, structure) = differentiate::vmap(name, &body, arguments, wrt.as_deref())?;
        Ok(rebuild(&structure, &mut results.into_iter()))
    })
}

fn segments(k: i64, fs: Vec<Arc<dyn Callable>>) -> Result<Dyn, Fault> {
    let length = differentiate::segment_length(k)?;
    let apply = |f: &Arc<dyn Callable>, x: Dyn| f.call(vec![Dyn::List(vec![x])]);
    let parts: Vec<Dyn> = fs
        .chunks(length)
        .map(|part| {
            let part = part.to_vec();
            let chain = function("checkpoint_segments", move |x| {
                part.iter().try_fold(Dyn::Borrowed(x[0].alias()), |x, f| apply(f, x))
            });
            match chain {
                Dyn::Function(chain) => checkpointed("checkpoint", Policy::Nothing, chain),
                other => other,
            }
        })
        .collect();
    Ok(function("checkpoint_segments", move |x| {
        let whole = parts.iter().try_fold(Dyn::Borrowed(x[0].alias()), |x, part| match part {
            Dyn::Function(part) => apply(part, x),
            _ => Ok(x),
        })?;
        match whole {
            Dyn::Borrowed(array) => Ok(Dyn::Array(array.clone())),
            other => Ok(other),
        }
    }))
}

fn custom(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new("custom_vjp", arguments);
    let [f, forward, backward] = [decoder.function()?, decoder.function()?, decoder.function()?];
    decoder.end()?;
    Ok(function("custom_vjp", move |arguments| {
        let custom = Custom {
            func: &|arrays: &[Array]| traceable(&*f, arrays),
            forward: &|arrays: &[Array]| traceable(&*forward, arrays),
            backward: &|arrays: &[Array]| traceable(&*backward, arrays),
        };
        let (results, structure) = differentiate::custom_vjp(&custom, arguments)?;
        Ok(rebuild(&structure, &mut results.into_iter()))
    }))
}

/// `fn name(policy words)`.
macro_rules! policies {
    ($($name:literal $signature:literal $call:literal $doc:literal;)*) => {
        /// The policies of checkpoints.
        pub(crate) static CHECKPOINT_POLICIES: &[Item] = &[$(Item {
            name: $name,
            place: Place::Function,
            signature: $signature,
            doc: $doc,
            example: concat!(
                "let f = grad(checkpoint_with(", $call,
                ", |[x]| checkpoint_name(x.dot(x), \"h\").tanh().sum()));\nf([&ones([2, 2])])"
            ),
            call: |arguments| policy_value($name, arguments),
        }),*];
    };
}

policies! {
    "nothing_saveable" "fn nothing_saveable() -> Policy"
        "nothing_saveable()"
        "Only the checkpoint's operands are kept.";
    "everything_saveable" "fn everything_saveable() -> Policy"
        "everything_saveable()"
        "All values are kept: as without a checkpoint.";
    "dots_saveable" "fn dots_saveable() -> Policy"
        "dots_saveable()"
        "Results of matrix products are kept.";
    "dots_with_no_batch_dims_saveable" "fn dots_with_no_batch_dims_saveable() -> Policy"
        "dots_with_no_batch_dims_saveable()"
        "Results of matrix products without batch axes are kept.";
    "save_only_these_names" "fn save_only_these_names<const K: usize>(names: [&str; K]) -> Policy"
        "save_only_these_names([\"h\"])"
        "Values named by checkpoint_name with these names are kept.";
    "save_anything_except_these_names"
        "fn save_anything_except_these_names<const K: usize>(names: [&str; K]) -> Policy"
        "save_anything_except_these_names([\"h\"])"
        "All values are kept but those with these names.";
    "save_any_names_but_these"
        "fn save_any_names_but_these<const K: usize>(names: [&str; K]) -> Policy"
        "save_any_names_but_these([\"h\"])"
        "All named values are kept but those with these names.";
    "save_and_offload_only_these_names"
        "fn save_and_offload_only_these_names<const K: usize, const M: usize>(names_which_can_be_saved: [&str; K], names_which_can_be_offloaded: [&str; M], offload_src: &str, offload_dst: &str) -> Policy"
        "save_and_offload_only_these_names([], [\"h\"], \"device\", \"pinned_host\")"
        "Of the values named by checkpoint_name, those with the first names are kept, and those with the second wait in host memory (from \"device\" to \"pinned_host\") until their gradient.";
    "offload_dot_with_no_batch_dims"
        "fn offload_dot_with_no_batch_dims(offload_src: &str, offload_dst: &str) -> Policy"
        "offload_dot_with_no_batch_dims(\"device\", \"pinned_host\")"
        "Results of matrix products without batch axes wait in host memory (from \"device\" to \"pinned_host\") until their gradient.";
}

pub(crate) static GRADIENTS: &[Item] = &[
    Item {
        name: "grad",
        place: Place::Function,
        signature: "fn grad<const N: usize>(f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, Array>",
        doc: "The gradient by the first argument of a function whose result is a scalar.",
        example: "let g = grad(|[x]| (x * x).sum());\ng([&linspace(1.0, 3.0, 3)])",
        call: |arguments| {
            let f = alone("grad", arguments)?;
            Ok(function("grad", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                differentiate::grad("grad", &body, arguments, &[0]).map(first)
            }))
        },
    },
    Item {
        name: "value_and_grad",
        place: Place::Function,
        signature: "fn value_and_grad<const N: usize>(f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, (Array, Array)>",
        doc: "The value and its gradient by the first argument.",
        example: "let g = value_and_grad(|[w, x]| x.dot(w).tanh().sum());\n\
                  let (l, dw) = g([&ones([3]), &ones([2, 3])]);\ndw",
        call: |arguments| {
            let f = alone("value_and_grad", arguments)?;
            Ok(function("value_and_grad", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                let (value, gradients) =
                    differentiate::value_and_grad("value_and_grad", &body, arguments, &[0])?;
                Ok(Dyn::Tuple(vec![Dyn::Array(value), first(gradients)]))
            }))
        },
    },
    Item {
        name: "grad_wrt",
        place: Place::Function,
        signature: "fn grad_wrt<const N: usize, const M: usize>(wrt: [i32; M], f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, [Array; M]>",
        doc: "The gradients by the arguments at these positions, from 0; negative ones count from \
              the back.",
        example: "let g = grad_wrt([0, 1], |[a, b]| (a * b).sum());\n\
                  let [da, db] = g([&ones([3]), &full([3], 2.0)]);\nda",
        call: |arguments| {
            let (wrt, f) = positioned("grad_wrt", arguments)?;
            Ok(function("grad_wrt", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                differentiate::grad("grad_wrt", &body, arguments, &wrt).map(list)
            }))
        },
    },
    Item {
        name: "value_and_grad_wrt",
        place: Place::Function,
        signature: "fn value_and_grad_wrt<const N: usize, const M: usize>(wrt: [i32; M], f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, (Array, [Array; M])>",
        doc: "The value and its gradients by the arguments at these positions.",
        example: "let g = value_and_grad_wrt([0, 1], |[a, b]| (a * b).sum());\n\
                  let (l, [da, db]) = g([&ones([3]), &full([3], 2.0)]);\nl",
        call: |arguments| {
            let (wrt, f) = positioned("value_and_grad_wrt", arguments)?;
            Ok(function("value_and_grad_wrt", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                let name = "value_and_grad_wrt";
                let (value, gradients) =
                    differentiate::value_and_grad(name, &body, arguments, &wrt)?;
                Ok(Dyn::Tuple(vec![Dyn::Array(value), list(gradients)]))
            }))
        },
    },
    Item {
        name: "value_and_grad_aux",
        place: Place::Function,
        signature: "fn value_and_grad_aux<const N: usize, Aux: Tree>(f: impl Fn([&Array; N]) -> (Array, Aux) + Send + Sync + 'static) -> Boxed<N, ((Array, Aux), Array)>",
        doc: "The value with whatever else the function gives beside it, and the value's gradient \
              by the first argument; JAX's has_aux.",
        example: "let g = value_and_grad_aux(|[w, x]| { let y = x.dot(w); (y.tanh().sum(), y) });\n\
                  let ((l, y), dw) = g([&ones([3]), &ones([2, 3])]);\ny",
        call: |arguments| {
            let f = alone("value_and_grad_aux", arguments)?;
            Ok(function("value_and_grad_aux", move |arguments| {
                let (value, gradients) = with_aux(&*f, arguments, &[0])?;
                Ok(Dyn::Tuple(vec![value, first(gradients)]))
            }))
        },
    },
    Item {
        name: "value_and_grad_aux_wrt",
        place: Place::Function,
        signature: "fn value_and_grad_aux_wrt<const N: usize, const M: usize, Aux: Tree>(wrt: [i32; M], f: impl Fn([&Array; N]) -> (Array, Aux) + Send + Sync + 'static) -> Boxed<N, ((Array, Aux), [Array; M])>",
        doc: "The same by the arguments at these positions.",
        example: "let g = value_and_grad_aux_wrt([0, 1], |[a, b]| ((a * b).sum(), [a.sum(), b.sum()]));\n\
                  let ((l, sums), [da, db]) = g([&ones([3]), &full([3], 2.0)]);\nda",
        call: |arguments| {
            let (wrt, f) = positioned("value_and_grad_aux_wrt", arguments)?;
            Ok(function("value_and_grad_aux_wrt", move |arguments| {
                let (value, gradients) = with_aux(&*f, arguments, &wrt)?;
                Ok(Dyn::Tuple(vec![value, list(gradients)]))
            }))
        },
    },
    Item {
        name: "vjp",
        place: Place::Function,
        signature: "fn vjp<const N: usize>(f: impl Fn([&Array; N]) -> Array, arguments: [&Array; N]) -> (Array, Boxed<1, [Array; N]>)",
        doc: "The value, and the function from its cotangent to the arguments' cotangents.",
        example: "let (y, back) = vjp(|[x]| x.sin(), [&ones([3])]);\n\
                  let [dx] = back([&full([3], 2.0)]);\ndx",
        call: |arguments| {
            let mut decoder = Decoder::new("vjp", arguments);
            let f = decoder.function()?;
            let given = decoder.arrays()?;
            decoder.end()?;
            let body = |arrays: &[Array]| traceable(&*f, arrays);
            let (value, pullback) = differentiate::vjp(&body, &given, given.len())?;
            let back = function("vjp", move |cotangents| match cotangents {
                [cotangent] => pullback.call(cotangent).map(list),
                _ => Err(crate::jit::wrong_count(1, cotangents.len())),
            });
            Ok(Dyn::Tuple(vec![Dyn::Array(value), back]))
        },
    },
    Item {
        name: "jvp",
        place: Place::Function,
        signature: "fn jvp<const N: usize>(f: impl Fn([&Array; N]) -> Array, arguments: [&Array; N], tangents: [&Array; N]) -> (Array, Array)",
        doc: "The value, and its derivative along tangents of the arguments.",
        example: "let (y, dy) = jvp(|[x]| x.sin(), [&zeros([3])], [&ones([3])]);\ndy",
        call: |arguments| {
            let mut decoder = Decoder::new("jvp", arguments);
            let f = decoder.function()?;
            let [given, tangents] = [decoder.arrays()?, decoder.arrays()?];
            decoder.end()?;
            let body = |arrays: &[Array]| traceable(&*f, arrays);
            let (value, tangent) = differentiate::jvp(&body, &given, &tangents)?;
            Ok(Dyn::Tuple(vec![Dyn::Array(value), Dyn::Array(tangent)]))
        },
    },
    Item {
        name: "jacobian",
        place: Place::Function,
        signature: "fn jacobian<const N: usize>(f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, Array>",
        doc: "The derivative of every element of the result by every element of the first argument: \
              the result's axes, then the argument's.",
        example: "let j = jacobian(|[x]| x * x);\nj([&linspace(1.0, 3.0, 3)])",
        call: |arguments| {
            let f = alone("jacobian", arguments)?;
            Ok(function("jacobian", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                differentiate::jacobian("jacobian", &body, arguments).map(Dyn::Array)
            }))
        },
    },
    Item {
        name: "jacrev",
        place: Place::Function,
        signature: "fn jacrev<const N: usize>(f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, Array>",
        doc: "The same as jacobian, under JAX's name: reverse mode, a way back for every element of \
              the result.",
        example: "let j = jacrev(|[x]| x * x);\nj([&linspace(1.0, 3.0, 3)])",
        call: |arguments| {
            let f = alone("jacrev", arguments)?;
            Ok(function("jacrev", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                differentiate::jacobian("jacrev", &body, arguments).map(Dyn::Array)
            }))
        },
    },
    Item {
        name: "jacfwd",
        place: Place::Function,
        signature: "fn jacfwd<const N: usize>(f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, Array>",
        doc: "The same in forward mode, a way forward for every element of the argument: cheaper \
              where the argument is the smaller one, and through while loops.",
        example: "let j = jacfwd(|[x]| x * x);\nj([&linspace(1.0, 3.0, 3)])",
        call: |arguments| {
            let f = alone("jacfwd", arguments)?;
            Ok(function("jacfwd", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                differentiate::jacfwd(&body, arguments).map(Dyn::Array)
            }))
        },
    },
    Item {
        name: "hessian",
        place: Place::Function,
        signature: "fn hessian<const N: usize>(f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static) -> Boxed<N, Array>",
        doc: "The second derivatives of a scalar by the first argument, whose axes stand twice.",
        example: "let h = hessian(|[x]| (x * x * x).sum());\nh([&linspace(1.0, 3.0, 3)])",
        call: |arguments| {
            let f = alone("hessian", arguments)?;
            Ok(function("hessian", move |arguments| {
                let body = |arrays: &[Array]| traceable(&*f, arrays);
                differentiate::hessian(&body, arguments).map(Dyn::Array)
            }))
        },
    },
    Item {
        name: "custom_vjp",
        place: Place::Function,
        signature: "fn custom_vjp<const N: usize, const K: usize, const M: usize>(f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static, forward: impl Fn([&Array; N]) -> (Array, [Array; K]) + Send + Sync + 'static, backward: impl Fn([&Array; M]) -> [Array; N] + Send + Sync + 'static) -> Boxed<N, Array>",
        doc: "A function with a gradient rule of its own: forward gives the result and the arrays \
              that backward needs; backward takes these and the result's cotangent, and gives one \
              cotangent an argument.",
        example: "let f = custom_vjp(|[x]| x.sqrt(), |[x]| (x.sqrt(), [x.sqrt()]), \
                  |[y, ct]| [ct / (y * 2.0)]);\n\
                  let g = grad(move |a: [&Array; 1]| f(a).sum());\ng([&full([3], 4.0)])",
        call: custom,
    },
];

pub(crate) static CHECKPOINTS: &[Item] = &[
    Item {
        name: "checkpoint",
        place: Place::Function,
        signature: "fn checkpoint<const N: usize, Out: Tree>(f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static) -> Boxed<N, Out>",
        doc: "The function; its gradient keeps the arguments only and computes the rest again.",
        example: "let f = grad(checkpoint(|[x]| x.tanh().sum()));\nf([&ones([3])])",
        call: |arguments| {
            let f = alone("checkpoint", arguments)?;
            Ok(checkpointed("checkpoint", Policy::Nothing, f))
        },
    },
    Item {
        name: "remat",
        place: Place::Function,
        signature: "fn remat<const N: usize, Out: Tree>(f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static) -> Boxed<N, Out>",
        doc: "The same as checkpoint, under JAX's older name.",
        example: "let f = grad(remat(|[x]| x.tanh().sum()));\nf([&ones([3])])",
        call: |arguments| {
            let f = alone("remat", arguments)?;
            Ok(checkpointed("remat", Policy::Nothing, f))
        },
    },
    Item {
        name: "checkpoint_with",
        place: Place::Function,
        signature: "fn checkpoint_with<const N: usize, Out: Tree>(policy: Policy, f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static) -> Boxed<N, Out>",
        doc: "The function; its gradient keeps the arguments and what the policy saves.",
        example: "let f = grad(checkpoint_with(dots_saveable(), |[x]| x.dot(x).tanh().sum()));\n\
                  f([&ones([2, 2])])",
        call: |arguments| {
            let mut decoder = Decoder::new("checkpoint_with", arguments);
            let policy = policy(&mut decoder)?;
            let f = decoder.function()?;
            decoder.end()?;
            Ok(checkpointed("checkpoint_with", policy, f))
        },
    },
    Item {
        name: "checkpoint_segments",
        place: Place::Function,
        signature: "fn checkpoint_segments<F: Fn([&Array; 1]) -> Array + Send + Sync + 'static>(k: i32, fs: Vec<F>) -> Boxed<1, Array>",
        doc: "The functions one behind the other, with a checkpoint around every k of them.",
        example: "let layers = vec![checkpoint(|[h]| h.tanh()), checkpoint(|[h]| h.sin())];\n\
                  let f = checkpoint_segments(2, layers);\nf([&ones([3])])",
        call: |arguments| {
            let mut decoder = Decoder::new("checkpoint_segments", arguments);
            let k = decoder.int()?;
            let fs = decoder.functions()?;
            decoder.end()?;
            segments(k, fs)
        },
    },
    Item {
        name: "checkpoint_name",
        place: Place::Function,
        signature: "fn checkpoint_name(x: impl Operand, name: &str) -> Array",
        doc: "The value itself under a name that a checkpoint's policy can save.",
        example: "checkpoint_name(&ones([3]), \"activation\")",
        call: |arguments| {
            let mut decoder = Decoder::new("checkpoint_name", arguments);
            let x = decoder.operand()?;
            let name = decoder.text()?;
            decoder.end()?;
            differentiate::checkpoint_name(x.input(), &name).map(Dyn::Array)
        },
    },
    Item {
        name: "residuals",
        place: Place::Function,
        signature: "fn residuals<const N: usize>(f: impl Fn([&Array; N]) -> Array, arguments: [&Array; N]) -> String",
        doc: "What the gradient of a function by its arguments keeps from the forward: shapes, \
              bytes, where it was made, and whose gradient wants it.",
        example: "println!(\"{}\", residuals(|[x]| x.tanh().sum(), [&ones([3])]))",
        call: |arguments| {
            let mut decoder = Decoder::new("residuals", arguments);
            let f = decoder.function()?;
            let given = decoder.arrays()?;
            decoder.end()?;
            let body = |arrays: &[Array]| traceable(&*f, arrays);
            Ok(Dyn::Text(differentiate::residuals(&body, &given, given.len())?.into()))
        },
    },
    Item {
        name: "vmap",
        place: Place::Function,
        signature: "fn vmap<const N: usize, Out: Tree>(f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static) -> Boxed<N, Out>",
        doc: "The function for every example at once: each argument has one more leading axis, and \
              so has every result.",
        example: "let f = vmap(|[x, y]| x.dot(y));\nf([&ones([5, 3]), &ones([5, 3])])",
        call: |arguments| {
            let f = alone("vmap", arguments)?;
            Ok(mapped("vmap", None, f))
        },
    },
    Item {
        name: "vmap_wrt",
        place: Place::Function,
        signature: "fn vmap_wrt<const N: usize, const M: usize, Out: Tree>(mapped: [i32; M], f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static) -> Boxed<N, Out>",
        doc: "As vmap over the arguments at these positions; the others are the same for all examples.",
        example: "let f = vmap_wrt([1], |[w, x]| w.dot(x));\nf([&ones([2, 3]), &ones([5, 3])])",
        call: |arguments| {
            let (wrt, f) = positioned("vmap_wrt", arguments)?;
            Ok(mapped("vmap_wrt", Some(wrt), f))
        },
    },
    Item {
        name: "stop_gradient",
        place: Place::Function,
        signature: "fn stop_gradient(x: impl Operand) -> Array",
        doc: "The value itself, as a constant to gradients.",
        example: "let f = grad(|[x]| (x * stop_gradient(x)).sum());\nf([&ones([3])])",
        call: |arguments| stopped(arguments),
    },
    Item {
        name: "stop_gradient",
        place: Place::Method("Array"),
        signature: "fn stop_gradient(&self) -> Array",
        doc: "The value itself, as a constant to gradients.",
        example: "let f = grad(|[x]| (x * x.stop_gradient()).sum());\nf([&ones([3])])",
        call: |arguments| stopped(arguments),
    },
];

fn stopped(arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new("stop_gradient", arguments);
    let x = decoder.operand()?;
    decoder.end()?;
    differentiate::stop_gradient(x.input()).map(Dyn::Array)
}
