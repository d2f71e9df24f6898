//! Ops that say something about gradients, and compute nothing.

use crate::application::Application;
use crate::batch::Batch;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::{Held, Rule, Zero};
use crate::rule::Term;
use crate::special::applied;
use vramlab_ir::{Fault, Lowering, MemorySpace, Type};

/// The ops of this file.
pub static DIFFERENTIATION: &[&Entry] =
    &[&STOP_GRADIENT, &CHECKPOINT_NAME, &BARRIER, &DEVICE_PUT, &CHECKPOINT, &CUSTOM_VJP];

/// The value, as a constant to gradients.
pub static STOP_GRADIENT: Entry = Entry {
    name: "stop_gradient",
    doc: "The value itself, which gradients take for a constant.",
    example: "let f = grad(|[x]| (x * &stop_gradient(x)).sum());\nf([&ones([3])])",
    operands: Operands::Exactly(1),
    params: &[],
    meaning: Meaning::Own { infer: |a| Ok(a.inputs.to_vec()), lower: |_| Lowering::Reshape },
    gradient: Zero("that is what it is for"),
    batch: Batch::Elementwise,
};

/// The value under a name.
pub static CHECKPOINT_NAME: Entry = Entry {
    name: "checkpoint_name",
    doc: "The value itself under a name that a checkpoint's policy can save.",
    example: "checkpoint_name(&ones([3]), \"activation\")",
    operands: Operands::Exactly(1),
    params: &[ParamSpec::new("name", Format::Text, "The name.")],
    meaning: Meaning::Own { infer: |a| Ok(a.inputs.to_vec()), lower: |_| Lowering::Reshape },
    gradient: Rule(|r| r.give(0, || r.ct)),
    batch: Batch::Elementwise,
};

/// A value that comes no sooner than others.
pub static BARRIER: Entry = Entry {
    name: "barrier",
    doc: "The first operand itself, no sooner than the other operands are computed. Nothing that is \
          computed from it is merged with what is computed from the operand: recomputation that \
          stays one. JAX's optimization_barrier.",
    example: "let f = jit(grad(checkpoint(|[x]| x.tanh().sum())));\nf([&ones([3])])",
    operands: Operands::AtLeast(1),
    params: &[],
    meaning: Meaning::Own {
        infer: |a| Ok(vec![a.inputs[0].clone()]),
        lower: |_| Lowering::Barrier,
    },
    gradient: Rule(|r| r.give(0, || r.ct)),
    batch: Batch::Rule(|b| {
        let operands: Vec<Term> = (0..b.operands()).map(|k| b.x(k)).collect();
        let held = b.apply(b.params.clone(), &operands);
        if b.batched(0) { held } else { held.broadcast(&b.leading(&b.shape(0))) }
    }),
};

/// A value copied to another memory.
pub static DEVICE_PUT: Entry = Entry {
    name: "device_put",
    doc: "The first operand copied to the memory kind of the parameter, \"device\" or \"pinned_host\", \
          no sooner than the other operands are computed. What checkpoint policies offload with; \
          gradients stay in device memory. XLA's MoveToHost and MoveToDevice.",
    example: "let policy = save_and_offload_only_these_names([\"a\"], [\"h\"], \"device\", \"pinned_host\");\n\
              let f = jit(grad(checkpoint_with(policy, |[x]| checkpoint_name(&x.tanh(), \"h\").exp().sum())));\n\
              f([&ones([3])])",
    operands: Operands::AtLeast(1),
    params: &[ParamSpec::new("memory_kind", Format::Text, "Where to: device or pinned_host.")],
    meaning: Meaning::Own {
        infer: |a| Ok(vec![a.inputs[0].within(memory_kind(a)?)]),
        lower: |_| Lowering::Transfer,
    },
    gradient: Rule(|r| r.give(0, || r.ct)),
    batch: Batch::Rule(|b| {
        let mut operands: Vec<Term> = (0..b.operands()).map(|k| b.x(k)).collect();
        let shape = b.leading(&b.shape(0));
        // Only copies touch host memory, so a value is repeated on the device's side of the copy.
        let from_device = b.params.text("memory_kind") == Some(MemorySpace::PinnedHost.name());
        if from_device && !b.batched(0) {
            operands[0] = operands[0].broadcast(&shape);
        }
        let put = b.apply(b.params.clone(), &operands);
        if from_device || b.batched(0) { put } else { put.broadcast(&shape) }
    }),
};

fn memory_kind(a: &Application) -> Result<MemorySpace, Fault> {
    let name = a.text("memory_kind");
    MemorySpace::parse(name).ok_or_else(|| {
        let known = MemorySpace::ALL.map(MemorySpace::name).join(" and ");
        let message = format!("there is no memory kind {name:?}");
        a.argument_fault(message).help(format!("the memory kinds are {known}"))
    })
}

/// A function whose values a gradient computes again.
pub static CHECKPOINT: Entry = Entry {
    name: "checkpoint",
    doc: "A traced function applied to its arguments. Its gradient keeps the arguments, and what the \
          policy saves, and computes the rest again.",
    example: "let f = grad(checkpoint(|[x]| x.tanh().sum()));\nf([&ones([3])])",
    operands: Operands::AtLeast(0),
    params: &[
        ParamSpec::new("policy", Format::Text, "What is saved, under JAX's names."),
        ParamSpec::new("func", Format::Func, "The function."),
    ],
    meaning: Meaning::Own {
        infer: |a| applied(a, a.func("func")),
        lower: |a| Lowering::Call(a.func("func").clone()),
    },
    gradient: Held,
    batch: Batch::Held,
};

/// A function with a gradient of its own.
pub static CUSTOM_VJP: Entry = Entry {
    name: "custom_vjp",
    doc: "A traced function applied to its arguments, with a gradient rule of its own: `forward` \
          gives the results and behind them what it keeps; `backward` takes what was kept and the \
          results' cotangents, and gives the cotangents of the first `given` arguments.",
    example: "let f = custom_vjp(|[x]| x.sqrt(), |[x]| (x.sqrt(), [x.sqrt()]), \
              |[y, ct]| [ct / (y * 2.0)]);\nf([&ones([3])])",
    operands: Operands::AtLeast(0),
    params: &[
        ParamSpec::new("func", Format::Func, "The function."),
        ParamSpec::new("forward", Format::Func, "The function with what it keeps."),
        ParamSpec::new("backward", Format::Func, "Cotangents from what was kept."),
        ParamSpec::new("given", Format::Int, "How many arguments have cotangents."),
    ],
    meaning: Meaning::Own {
        infer: infer_custom,
        lower: |a| Lowering::Call(a.func("func").clone()),
    },
    gradient: Held,
    batch: Batch::Held,
};

fn infer_custom(a: &Application) -> Result<Vec<Type>, Fault> {
    let results = applied(a, a.func("func"))?;
    let forward = applied(a, a.func("forward"))?;
    let Some((own, kept)) = forward.split_at_checked(results.len()) else {
        return Err(a.argument_fault("forward gives fewer results than the function"));
    };
    if own != results {
        return Err(a.argument_fault("forward does not give the function's results first"));
    }
    let backward = a.func("backward");
    let wanted: Vec<Type> = kept.iter().chain(&results).cloned().collect();
    if backward.param_types() != wanted {
        return Err(a.argument_fault("backward does not take what forward keeps and cotangents"));
    }
    let given = usize::try_from(a.int("given")).ok().and_then(|given| a.inputs.get(..given));
    match given {
        Some(given) if backward.result_types() == given => Ok(results),
        _ => Err(a.argument_fault("backward does not give the arguments' cotangents")),
    }
}
