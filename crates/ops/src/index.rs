//! Ops whose positions are data: indices and starts are `i32`, and clamped so that every read and
//! write stays inside, as in XLA. Negative indices of a gather count from the end, as in JAX and NumPy.

use crate::application::Application;
use crate::batch::{Batch, Examples, moved};
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::Rule;
use crate::rule::{self, Term};
use crate::{IOTA, LT, MAXIMUM, MINIMUM};
use vramlab_ir::{
    DType, Fault, FaultKind, Inst, Literal, Lowering, Param, Params, ScalarOp, ScalarProgram,
    Shape, Type,
};

/// The ops of this file.
pub static INDEXING: &[&Entry] = &[&GATHER, &SCATTER_ADD, &DYNAMIC_SLICE, &DYNAMIC_UPDATE_SLICE];

/// Elements at indices along one axis.
pub static GATHER: Entry = Entry {
    name: "gather",
    doc: "Elements of x at i32 indices along one axis: negative ones count from its end, and what lies outside \
          is clamped to it. The result's shape is x's with \
          that axis replaced by the indices' shape; the indices carry one trailing extent of 1 for \
          each axis of x behind it (a free reshape), so that they broadcast to the result.",
    example: "take(linspace(0.0, 0.9, 10), array([3, 1]), 0)",
    operands: Operands::Exactly(2),
    params: &[ParamSpec::new("axis", Format::Int, "The axis of x, counted from the front.")],
    meaning: Meaning::Own { infer: infer_gather, lower: lower_gather },
    gradient: Rule(|r| {
        r.give(0, || along(r, &SCATTER_ADD, &[r.full(0.0, &r.x(0).ty()), r.x(1), r.ct]));
    }),
    batch: Batch::Rule(gathers),
};

fn infer_gather(a: &Application) -> Result<Vec<Type>, Fault> {
    let x = &a.inputs[0];
    Ok(vec![Type::new(x.dtype, gathered(a)?)])
}

/// The shape of what a gather from operand 0 at the indices of operand 1 gives.
fn gathered(a: &Application) -> Result<Vec<usize>, Fault> {
    let (x, indices) = (&a.inputs[0], &a.inputs[1]);
    want_i32(a, indices)?;
    let axis = a.front_axis(x, a.int("axis"))?;
    let behind = &x.shape[axis + 1..];
    let Some(split) = indices.shape.rank().checked_sub(behind.len()) else {
        return Err(trailing(a, behind.len()));
    };
    let (shape, ones) = indices.shape.split_at(split);
    if ones.iter().any(|&extent| extent != 1) {
        return Err(trailing(a, behind.len()));
    }
    let dims = [&x.shape[..axis], shape, behind].concat();
    let empty = x.shape[axis] == 0 && !dims.contains(&0);
    if empty {
        return Err(a.shape_fault(format!("axis {axis} has no elements to take")));
    }
    if i32::try_from(x.shape[axis]).is_err() {
        return Err(a.argument_fault(format!("positions along axis {axis} do not fit in i32")));
    }
    Ok(dims)
}

fn trailing(a: &Application, ones: usize) -> Fault {
    a.shape_fault(format!("the indices want {ones} trailing extents of 1"))
}

fn lower_gather(a: &Application) -> Lowering {
    let mut program = ScalarProgram::default();
    let given = program.input(1, DType::I32);
    let (dtype, axis) = (a.inputs[0].dtype, a.int("axis") as u32);
    let i32_of = |value: usize| Literal::from_i64(DType::I32, value as i64);
    let [zero, extent] = [0, a.inputs[0].shape[axis as usize]].map(|v| program.literal(i32_of(v)));
    let negative = program.op(ScalarOp::Lt, DType::I32, &[given, zero]);
    let behind = program.op(ScalarOp::Add, DType::I32, &[given, extent]);
    let index = program.op(ScalarOp::Select, DType::I32, &[negative, behind, given]);
    program.push(Inst::Gather { input: 0, dtype, axis, index });
    Lowering::Elementwise(program)
}

/// Elements added at indices along one axis.
pub static SCATTER_ADD: Entry = Entry {
    name: "scatter_add",
    doc: "x with updates added at i32 indices along one axis, taken as gather takes them (outside as JAX's \
          mode clip, where its default drops what lies there): the transpose of gather. The \
          updates have the shape that gather gives for these indices; equal indices add up.",
    example: "scatter_add(zeros([4]), array([1, 3, 1]), ones([3]), 0)",
    operands: Operands::Exactly(3),
    params: &[ParamSpec::new("axis", Format::Int, "The axis of x, counted from the front.")],
    meaning: Meaning::Own {
        infer: infer_scatter_add,
        lower: |a| Lowering::ScatterAdd { axis: a.int("axis") as usize },
    },
    gradient: Rule(|r| {
        r.give(0, || r.ct);
        r.give(2, || along(r, &GATHER, &[r.ct, r.x(1)]));
    }),
    batch: Batch::Rule(scatters),
};

fn infer_scatter_add(a: &Application) -> Result<Vec<Type>, Fault> {
    a.want(Domain::Number, 0)?;
    a.want_equal(0, 2)?;
    let wanted = gathered(a)?;
    if a.inputs[2].shape.dims() != wanted {
        let wanted = Shape::new(wanted);
        return Err(a.shape_fault(format!("the updates at these indices want the shape {wanted}")));
    }
    Ok(vec![a.inputs[0].clone()])
}

/// A window at a start that is data.
pub static DYNAMIC_SLICE: Entry = Entry {
    name: "dynamic_slice",
    doc: "A window of x; the i32 scalar starts, one per axis, are clamped so that it stays inside.",
    example: "dynamic_slice(linspace(0.0, 9.0, 10), &[full_as(I32, (), 3.0)], [4])",
    operands: Operands::AtLeast(1),
    params: &[ParamSpec::new("sizes", Format::Shape, "The window's shape.")],
    meaning: Meaning::Own { infer: infer_dynamic_slice, lower: |_| Lowering::DynamicSlice },
    gradient: Rule(|r| {
        r.give(0, || updated(r, r.full(0.0, &r.x(0).ty()), r.ct, 1));
    }),
    batch: Batch::Rule(|b| match starts_differ(b, 1) {
        true => b.one_by_one(),
        false => {
            let starts = (1..b.operands()).map(|k| b.x(k));
            let operands: Vec<Term> = [b.x(0), b.start(0)].into_iter().chain(starts).collect();
            b.apply(b.prefixed(&[("sizes", b.size as i64)]), &operands)
        }
    }),
};

fn infer_dynamic_slice(a: &Application) -> Result<Vec<Type>, Fault> {
    let (x, sizes) = (&a.inputs[0], a.shape("sizes"));
    want_starts(a, 1)?;
    let inside =
        sizes.rank() == x.shape.rank() && sizes.iter().zip(x.shape.iter()).all(|(s, e)| s <= e);
    if !inside {
        return Err(a.shape_fault(format!("a window {sizes} does not fit in {}", x.shape)));
    }
    Ok(vec![Type::new(x.dtype, sizes.clone())])
}

/// A window replaced at a start that is data.
pub static DYNAMIC_UPDATE_SLICE: Entry = Entry {
    name: "dynamic_update_slice",
    doc: "x with a window replaced by the update; the i32 scalar starts, one per axis, are clamped \
          so that it stays inside.",
    example: "dynamic_update_slice(zeros([10]), ones([4]), &[full_as(I32, (), 3.0)])",
    operands: Operands::AtLeast(2),
    params: &[],
    meaning: Meaning::Own {
        infer: infer_dynamic_update_slice,
        lower: |_| Lowering::DynamicUpdateSlice,
    },
    gradient: Rule(|r| {
        r.give(0, || updated(r, r.ct, r.full(0.0, &r.x(1).ty()), 2));
        r.give(1, || {
            let sizes = Params::new().with("sizes", Param::Shape(r.x(1).shape()));
            let operands: Vec<Term> = std::iter::once(r.ct).chain(starts(r, 2)).collect();
            r.op(&DYNAMIC_SLICE, sizes, &operands)
        });
    }),
    batch: Batch::Rule(|b| match starts_differ(b, 2) {
        true => b.one_by_one(),
        false => {
            let starts = (2..b.operands()).map(|k| b.x(k));
            let operands = [b.front(0), b.front(1), b.start(0)].into_iter().chain(starts);
            b.apply(b.params.clone(), &operands.collect::<Vec<Term>>())
        }
    }),
};

fn infer_dynamic_update_slice(a: &Application) -> Result<Vec<Type>, Fault> {
    let (x, update) = (&a.inputs[0], &a.inputs[1]);
    a.want_equal(0, 1)?;
    want_starts(a, 2)?;
    let inside = update.shape.rank() == x.shape.rank()
        && update.shape.iter().zip(x.shape.iter()).all(|(s, e)| s <= e);
    if !inside {
        let what = format!("an update {} does not fit in {}", update.shape, x.shape);
        return Err(a.shape_fault(what));
    }
    Ok(vec![x.clone()])
}

fn want_starts(a: &Application, first: usize) -> Result<(), Fault> {
    let (starts, rank) = (&a.inputs[first..], a.inputs[0].shape.rank());
    if starts.len() != rank {
        return Err(a.argument_fault(format!("{} starts for {rank} axes", starts.len())));
    }
    for start in starts {
        want_i32(a, start)?;
        if start.shape.rank() != 0 {
            return Err(a.shape_fault(format!("a start is a scalar, not {start}")));
        }
    }
    Ok(())
}

fn want_i32(a: &Application, ty: &Type) -> Result<(), Fault> {
    if ty.dtype == DType::I32 {
        return Ok(());
    }
    let what = format!("positions are i32, not {}", ty.dtype);
    Err(a.fault(FaultKind::DType, what).help("convert to i32 first"))
}

/// `op` along the equation's own axis.
fn along<'r>(r: &rule::Rule<'r>, op: &'static Entry, operands: &[Term<'r>]) -> Term<'r> {
    r.op(op, r.params.clone(), operands)
}

/// The operands from `first` on: one start an axis.
fn starts<'r>(r: &rule::Rule<'r>, first: usize) -> impl Iterator<Item = Term<'r>> {
    (first..r.operands()).map(|k| r.x(k))
}

/// `x` with a window replaced at the equation's own starts.
fn updated<'r>(r: &rule::Rule<'r>, x: Term<'r>, window: Term<'r>, first: usize) -> Term<'r> {
    let operands: Vec<Term> = [x, window].into_iter().chain(starts(r, first)).collect();
    r.op(&DYNAMIC_UPDATE_SLICE, Params::new(), &operands)
}

/// Whether a start, from operand `first` on, is one for each example.
fn starts_differ(b: &Examples, first: usize) -> bool {
    (first..b.operands()).any(|k| b.batched(k))
}

/// Which axis of an example positions run along.
fn axis_of(b: &Examples) -> usize {
    b.params.int("axis").unwrap_or_default() as usize
}

fn gathers<'r>(b: &Examples<'r>) -> Term<'r> {
    match (b.batched(0), b.batched(1)) {
        (_, false) => b.apply(b.shifted(&["axis"]), &[b.x(0), b.x(1)]),
        // The batch's axis is the first of the indices' own, where the axis was.
        (false, true) => moved(b.apply(b.params.clone(), &[b.x(0), b.x(1)]), axis_of(b), 0),
        (true, true) => {
            let axis = axis_of(b);
            let indices = b.shape(1).rank() - (b.shape(0).rank() - axis - 1);
            let rows = b.op(&GATHER, along_first(), &[joined(b, b.x(0)), positions(b)]);
            // [n, indices…, before…, behind…] to [n, before…, indices…, behind…].
            (0..axis).fold(rows, |rows, at| moved(rows, 1 + indices + at, 1 + at))
        }
    }
}

fn scatters<'r>(b: &Examples<'r>) -> Term<'r> {
    if !b.batched(1) {
        return b.apply(b.shifted(&["axis"]), &[b.front(0), b.x(1), b.front(2)]);
    }
    let (axis, x) = (axis_of(b), b.front(0));
    let indices = b.shape(1).rank() - (b.shape(0).rank() - axis - 1);
    // As in a gather, the other way round: the indices' axes come before those before the axis.
    let updates = (0..axis).fold(b.front(2), |updates, _| moved(updates, 1, axis + indices));
    let rows = moved(x, 1 + axis, 1).shape();
    let sums = b.op(&SCATTER_ADD, along_first(), &[joined(b, x), positions(b), updates]);
    moved(sums.reshape(&rows), 1, 1 + axis)
}

fn along_first() -> Params {
    Params::new().with("axis", Param::Int(0))
}

/// All examples' slices along the axis one behind the other: `[n · extent, before…, behind…]`.
fn joined<'r>(b: &Examples<'r>, x: Term<'r>) -> Term<'r> {
    let rows = moved(x, 1 + axis_of(b), 1);
    let shape = rows.shape();
    rows.reshape(&Shape::new([&[shape[0] * shape[1]], &shape[2..]].concat()))
}

/// Each example's indices, counted and clamped within its axis and moved to where [`joined`] has its slices.
fn positions<'r>(b: &Examples<'r>) -> Term<'r> {
    let (x, axis) = (b.shape(0), axis_of(b));
    let own = b.shape(1);
    let split = own.rank() - (x.rank() - axis - 1);
    let ones = vec![1; x.rank() - 1];
    let shape = b.leading(&[&own[..split], &ones].concat());
    let last = b.start(x[axis] as i64 - 1);
    let given = b.x(1);
    let behind = given + b.start(x[axis] as i64);
    let counted = given.with(&LT, b.start(0)).select(behind, given);
    let inside = counted.with(&MAXIMUM, b.start(0)).with(&MINIMUM, last).reshape(&shape);
    let column = Shape::new([&[b.size], vec![1; shape.rank() - 1].as_slice()].concat());
    let params = Params::new()
        .with("dtype", Param::DType(DType::I32))
        .with("shape", Param::Shape(column))
        .with("axis", Param::Int(0));
    inside + b.op(&IOTA, params, &[]) * b.start(x[axis] as i64)
}
