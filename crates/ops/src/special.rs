//! Ops with mixed element types, and those that hold or pass programs.

use crate::application::{Application, list};
use crate::batch::Batch;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::{Held, Rule};
use vramlab_ir::{DType, Fault, FaultKind, Func, Lowering, ScalarOp, ScalarProgram, Type};

/// The ops of this file.
pub static SPECIAL: &[&Entry] = &[&SELECT, &CONVERT, &IDENTITY, &CALL];

/// What a `call` may stand for.
pub static CALL_KINDS: &[&str] = &["jit"];

/// `select(condition, a, b)`.
pub static SELECT: Entry = Entry {
    name: "select",
    doc: "a where the condition holds, b elsewhere; the three shapes broadcast.",
    example: "let x = linspace(-1.0, 1.0, 5);\nselect(x.gt(0.0), &x, zeros([5]))",
    operands: Operands::Exactly(3),
    params: &[],
    meaning: Meaning::Own { infer: infer_select, lower: lower_select },
    gradient: Rule(|r| {
        let zero = || r.ct.like(0.0);
        r.give(1, || r.x(0).select(r.ct, zero()));
        r.give(2, || r.x(0).select(zero(), r.ct));
    }),
    batch: Batch::Elementwise,
};

fn infer_select(a: &Application) -> Result<Vec<Type>, Fault> {
    if a.inputs[0].dtype != DType::Bool {
        let what = format!("the condition is bool, not {}", a.inputs[0].dtype);
        return Err(a.fault(FaultKind::DType, what).help("compare with something first"));
    }
    a.want_equal(1, 2)?;
    Ok(vec![Type::new(a.inputs[1].dtype, a.broadcast()?)])
}

/// The halves are moved as they are: selecting does not round.
fn lower_select(a: &Application) -> Lowering {
    let dtype = a.inputs[1].dtype;
    let mut program = ScalarProgram::default();
    let args = [program.input(0, DType::Bool), program.input(1, dtype), program.input(2, dtype)];
    program.op(ScalarOp::Select, dtype, &args);
    Lowering::Elementwise(program)
}

/// `convert(x)` to parameter `dtype`.
pub static CONVERT: Entry = Entry {
    name: "convert",
    doc: "The elements in another type, as Rust's `as`: floats to integers truncate and saturate.",
    example: "linspace(0.0, 2.0, 5).convert(I32)",
    operands: Operands::Exactly(1),
    params: &[ParamSpec::new("dtype", Format::DType, "The type to convert to.")],
    meaning: Meaning::Own { infer: infer_convert, lower: lower_convert },
    gradient: Rule(|r| r.give(0, || r.ct.convert(r.x(0).dtype()))),
    batch: Batch::Elementwise,
};

fn infer_convert(a: &Application) -> Result<Vec<Type>, Fault> {
    Ok(vec![Type::new(a.dtype("dtype"), a.inputs[0].shape.clone())])
}

fn lower_convert(a: &Application) -> Lowering {
    let from = a.inputs[0].dtype;
    let mut program = ScalarProgram::default();
    let input = program.input(0, from);
    program.convert(from, a.dtype("dtype"), input);
    Lowering::Elementwise(program)
}

/// The value itself.
pub static IDENTITY: Entry = Entry {
    name: "identity",
    doc: "The value itself, kept apart by every pass: what `copy` is made of.",
    example: "ones([3]).copy()",
    operands: Operands::Exactly(1),
    params: &[],
    meaning: Meaning::Own { infer: |a| Ok(a.inputs.to_vec()), lower: |_| Lowering::Identity },
    gradient: Rule(|r| r.give(0, || r.ct)),
    batch: Batch::Elementwise,
};

/// A function applied to the operands.
pub static CALL: Entry = Entry {
    name: "call",
    doc: "A traced function applied to its arguments; the compiler inlines it.",
    example: "let f = jit(|[x]| x.tanh());\nf([&ones([3])])",
    operands: Operands::AtLeast(0),
    params: &[
        ParamSpec::new("kind", Format::Text, "What the call stands for: jit."),
        ParamSpec::new("func", Format::Func, "The function."),
    ],
    meaning: Meaning::Own { infer: infer_call, lower: |a| Lowering::Call(a.func("func").clone()) },
    gradient: Held,
    batch: Batch::Held,
};

fn infer_call(a: &Application) -> Result<Vec<Type>, Fault> {
    let kind = a.text("kind");
    if !CALL_KINDS.contains(&kind) {
        let what = format!("kind {kind:?} is unknown; known are {}", CALL_KINDS.join(", "));
        return Err(a.argument_fault(what));
    }
    applied(a, a.func("func"))
}

/// The results of a function that takes the operands.
///
/// # Errors
/// A fault that says what it takes.
pub(crate) fn applied(a: &Application, func: &Func) -> Result<Vec<Type>, Fault> {
    let wanted = func.param_types();
    if wanted == a.inputs {
        return Ok(func.result_types());
    }
    let arity = wanted.len() == a.inputs.len();
    let dtypes = wanted.iter().zip(a.inputs).any(|(w, i)| w.dtype != i.dtype);
    let kind = match (arity, dtypes) {
        (false, _) => FaultKind::Argument,
        (true, true) => FaultKind::DType,
        (true, false) => FaultKind::Shape,
    };
    let takes = if wanted.is_empty() { "nothing".to_string() } else { list(&wanted) };
    Err(a.fault(kind, format!("function {} takes {takes}", func.name)))
}
