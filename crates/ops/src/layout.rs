//! Ops that place elements and compute nothing: any element type.

use crate::application::Application;
use crate::batch::Batch;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::Rule;
use crate::rule::{self, Term};
use vramlab_ir::{Fault, Lowering, Shape, Type};

/// The ops of this file.
pub static LAYOUT: &[&Entry] =
    &[&RESHAPE, &TRANSPOSE, &BROADCAST, &SLICE, &FLIP, &CONCATENATE, &PAD];

fn strides(ty: &Type) -> Vec<isize> {
    ty.shape.strides().into_iter().map(|stride| stride as isize).collect()
}

fn like(a: &Application, shape: impl Into<Shape>) -> Result<Vec<Type>, Fault> {
    Ok(vec![Type::new(a.inputs[0].dtype, shape)])
}

/// The same elements in order, another shape.
pub static RESHAPE: Entry = Entry {
    name: "reshape",
    doc: "The same elements in row-major order under another shape; no data moves.",
    example: "linspace(1.0, 6.0, 6).reshape([2, 3])",
    operands: Operands::Exactly(1),
    params: &[ParamSpec::new("shape", Format::Shape, "The result's shape.")],
    meaning: Meaning::Own { infer: infer_reshape, lower: |_| Lowering::Reshape },
    gradient: Rule(|r| r.give(0, || r.ct.reshape(&r.x(0).shape()))),
    batch: Batch::Rule(|b| b.apply(b.prefixed(&[("shape", b.size as i64)]), &[b.x(0)])),
};

fn infer_reshape(a: &Application) -> Result<Vec<Type>, Fault> {
    let (from, to) = (&a.inputs[0].shape, a.shape("shape"));
    match (from.checked_elements(), to.checked_elements()) {
        (Some(m), Some(n)) if m == n => like(a, to.clone()),
        (Some(m), Some(n)) => {
            Err(a.shape_fault(format!("{m} elements do not fill {to}, which holds {n}")))
        }
        _ => Err(a.shape_fault(format!("{to} holds more elements than can be counted"))),
    }
}

/// Axes in another order.
pub static TRANSPOSE: Entry = Entry {
    name: "transpose",
    doc: "Axes in another order: axis i of the result is axis perm[i] of x.",
    example: "linspace(1.0, 6.0, 6).reshape([2, 3]).transpose()",
    operands: Operands::Exactly(1),
    params: &[ParamSpec::new("perm", Format::Ints, "Each axis of x once, counted from the front.")],
    meaning: Meaning::Own { infer: infer_transpose, lower: lower_transpose },
    gradient: Rule(|r| {
        r.give(0, || {
            let perm = r.ints("perm");
            let mut back = vec![0; perm.len()];
            perm.iter().enumerate().for_each(|(to, &from)| back[from as usize] = to);
            r.ct.transpose(&back)
        })
    }),
    batch: Batch::Rule(|b| {
        let perm: Vec<usize> = b
            .params
            .ints("perm")
            .unwrap_or_default()
            .iter()
            .map(|&axis| axis as usize + 1)
            .collect();
        b.x(0).transpose(&[&[0], perm.as_slice()].concat())
    }),
};

fn infer_transpose(a: &Application) -> Result<Vec<Type>, Fault> {
    let perm = a.per_axis("perm")?;
    let mut sorted = perm.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..perm.len() as i64) {
        return Err(a.argument_fault(format!("perm {perm:?} does not name each axis once")));
    }
    let shape = &a.inputs[0].shape;
    like(a, perm.iter().map(|&axis| shape[axis as usize]).collect::<Vec<usize>>())
}

fn lower_transpose(a: &Application) -> Lowering {
    let strides = strides(&a.inputs[0]);
    let permuted = a.ints("perm").iter().map(|&axis| strides[axis as usize]).collect();
    Lowering::View { offset: 0, strides: permuted }
}

/// Repeats along axes of extent 1 and new leading axes.
pub static BROADCAST: Entry = Entry {
    name: "broadcast",
    doc: "x repeated along new leading axes and axes of extent 1, as NumPy's broadcast_to.",
    example: "broadcast_to(linspace(1.0, 3.0, 3), [2, 3])",
    operands: Operands::Exactly(1),
    params: &[ParamSpec::new("shape", Format::Shape, "The result's shape.")],
    meaning: Meaning::Own { infer: infer_broadcast, lower: lower_broadcast },
    gradient: Rule(|r| r.give(0, || r.ct)),
    batch: Batch::Rule(|b| {
        let own = b.shape(0);
        let rank = b.params.shape("shape").map_or(0, Shape::rank);
        let ones = vec![1; rank - own.rank()];
        let aligned = b.x(0).reshape(&b.leading(&[&ones, own.dims()].concat()));
        b.apply(b.prefixed(&[("shape", b.size as i64)]), &[aligned])
    }),
};

fn infer_broadcast(a: &Application) -> Result<Vec<Type>, Fault> {
    let (from, to) = (&a.inputs[0].shape, a.shape("shape"));
    if from.broadcast(to).as_ref() != Some(to) {
        return Err(a.shape_fault(format!("does not broadcast to {to}")));
    }
    like(a, to.clone())
}

fn lower_broadcast(a: &Application) -> Lowering {
    let from = &a.inputs[0];
    let fresh = a.shape("shape").rank() - from.shape.rank();
    let repeated = from.shape.iter().zip(strides(from)).map(|(&extent, stride)| match extent {
        1 => 0,
        _ => stride,
    });
    let strides = std::iter::repeat_n(0, fresh).chain(repeated).collect();
    Lowering::View { offset: 0, strides }
}

/// A window with steps.
pub static SLICE: Entry = Entry {
    name: "slice",
    doc: "Elements start, start + step, … before stop along each axis.",
    example: "linspace(0.0, 9.0, 10).slice(2..8)",
    operands: Operands::Exactly(1),
    params: &[
        ParamSpec::new("start", Format::Ints, "The first coordinate, per axis."),
        ParamSpec::new("stop", Format::Ints, "The coordinate before which to stop, per axis."),
        ParamSpec::new("step", Format::Ints, "The distance, at least 1, per axis."),
    ],
    meaning: Meaning::Own { infer: infer_slice, lower: lower_slice },
    gradient: Rule(|r| r.give(0, || unsliced(r))),
    batch: Batch::Rule(|b| {
        let whole = [("start", 0), ("stop", b.size as i64), ("step", 1)];
        b.apply(b.prefixed(&whole), &[b.x(0)])
    }),
};

fn infer_slice(a: &Application) -> Result<Vec<Type>, Fault> {
    let (start, stop, step) = (a.per_axis("start")?, a.per_axis("stop")?, a.per_axis("step")?);
    let mut dims = Vec::with_capacity(start.len());
    for (axis, &extent) in a.inputs[0].shape.iter().enumerate() {
        let (from, to, by) = (start[axis], stop[axis], step[axis]);
        if by < 1 {
            return Err(a.argument_fault(format!("step {by} at axis {axis} is below 1")));
        }
        if from < 0 || from > to || to > extent as i64 {
            let what = format!("{from}..{to} is not inside 0..{extent} at axis {axis}");
            return Err(a.argument_fault(what));
        }
        dims.push(((to - from) as usize).div_ceil(by as usize));
    }
    like(a, dims)
}

fn lower_slice(a: &Application) -> Lowering {
    let dense = strides(&a.inputs[0]);
    let offset =
        a.ints("start").iter().zip(&dense).map(|(&from, &stride)| from as usize * stride as usize);
    let offset = offset.sum();
    // A step beyond the extent never is taken; saturating keeps the product from overflowing.
    let steps = a.ints("step").iter().zip(&dense);
    let strides = steps.map(|(&by, &stride)| (by as isize).saturating_mul(stride)).collect();
    Lowering::View { offset, strides }
}

/// Reversed axes.
pub static FLIP: Entry = Entry {
    name: "flip",
    doc: "The elements in reverse order along axes.",
    example: "linspace(1.0, 3.0, 3).flip(0)",
    operands: Operands::Exactly(1),
    params: &[ParamSpec::new("axes", Format::Ints, "The axes to reverse, ascending.")],
    meaning: Meaning::Own { infer: infer_flip, lower: lower_flip },
    gradient: Rule(|r| r.give(0, || r.op(&FLIP, r.params.clone(), &[r.ct]))),
    batch: Batch::Rule(|b| b.apply(b.shifted(&["axes"]), &[b.x(0)])),
};

fn infer_flip(a: &Application) -> Result<Vec<Type>, Fault> {
    a.ascending_axes("axes")?;
    Ok(a.inputs.to_vec())
}

fn lower_flip(a: &Application) -> Lowering {
    let mut strides = strides(&a.inputs[0]);
    let mut offset = 0;
    for axis in a.ints("axes").iter().map(|&axis| axis as usize) {
        offset += a.inputs[0].shape[axis].saturating_sub(1) * strides[axis] as usize;
        strides[axis] = -strides[axis];
    }
    Lowering::View { offset, strides }
}

/// One behind the other.
pub static CONCATENATE: Entry = Entry {
    name: "concatenate",
    doc: "Arrays one behind the other along an axis.",
    example: "concatenate(&[ones([2]), zeros([3])], 0)",
    operands: Operands::AtLeast(1),
    params: &[ParamSpec::new("axis", Format::Int, "The axis, counted from the front.")],
    meaning: Meaning::Own {
        infer: infer_concatenate,
        lower: |a| Lowering::Concatenate { axis: a.int("axis") as usize },
    },
    gradient: Rule(|r| {
        let axis = r.params.int("axis").unwrap_or_default() as usize;
        let mut from = 0;
        for k in 0..r.operands() {
            let own = r.x(k).shape();
            let mut start = vec![0; own.rank()];
            let mut stop: Vec<i64> = own.iter().map(|&extent| extent as i64).collect();
            (start[axis], stop[axis]) = (from, from + own[axis] as i64);
            from = stop[axis];
            r.give(k, || r.ct.slice(start, stop));
        }
    }),
    batch: Batch::Rule(|b| {
        let operands: Vec<Term> = (0..b.operands()).map(|k| b.front(k)).collect();
        b.apply(b.shifted(&["axis"]), &operands)
    }),
};

fn infer_concatenate(a: &Application) -> Result<Vec<Type>, Fault> {
    let first = &a.inputs[0].shape;
    let axis = a.front_axis(&a.inputs[0], a.int("axis"))?;
    let mut dims = first.to_vec();
    for (input, ty) in a.inputs.iter().enumerate().skip(1) {
        a.want_equal(0, input)?;
        let agrees = ty.shape.rank() == first.rank()
            && (0..first.rank()).all(|other| other == axis || ty.shape[other] == first[other]);
        if !agrees {
            return Err(a.shape_fault(format!("extents beside axis {axis} differ")));
        }
        dims[axis] = dims[axis].saturating_add(ty.shape[axis]);
    }
    like(a, dims)
}

/// Surrounded by a value.
pub static PAD: Entry = Entry {
    name: "pad",
    doc: "x surrounded by a value: low elements before and high elements behind, per axis.",
    example: "pad(ones([2]), [(1, 2)], 0.0)",
    operands: Operands::Exactly(2),
    params: &[
        ParamSpec::new("low", Format::Ints, "Elements before, per axis."),
        ParamSpec::new("high", Format::Ints, "Elements behind, per axis."),
    ],
    meaning: Meaning::Own { infer: infer_pad, lower: lower_pad },
    gradient: Rule(|r| {
        let inner = || {
            let low = r.ints("low").to_vec();
            let shape = r.x(0).shape();
            let stop = low.iter().zip(shape.iter()).map(|(&low, &extent)| low + extent as i64);
            r.ct.slice(low.clone(), stop.collect())
        };
        r.give(0, inner);
        r.give(1, || r.ct.sum_to(&Shape::scalar()) - inner().sum_to(&Shape::scalar()));
    }),
    batch: Batch::Rule(|b| match b.batched(1) {
        false => b.apply(b.prefixed(&[("low", 0), ("high", 0)]), &[b.x(0), b.x(1)]),
        true => b.one_by_one(),
    }),
};

fn infer_pad(a: &Application) -> Result<Vec<Type>, Fault> {
    a.want_equal(0, 1)?;
    if a.inputs[1].shape.rank() != 0 {
        return Err(a.shape_fault("the value is not a scalar"));
    }
    let (low, high) = (a.per_axis("low")?, a.per_axis("high")?);
    if let Some(negative) = low.iter().chain(high).find(|&&n| n < 0) {
        return Err(a.argument_fault(format!("padding {negative} is negative")).help("use slice"));
    }
    let padded = a.inputs[0].shape.iter().zip(low.iter().zip(high));
    let dims = padded.map(|(&extent, (&low, &high))| {
        extent.saturating_add(low as usize).saturating_add(high as usize)
    });
    like(a, dims.collect::<Vec<usize>>())
}

fn lower_pad(a: &Application) -> Lowering {
    Lowering::Pad { low: a.ints("low").iter().map(|&low| low as usize).collect() }
}

/// Elements back where a slice took them from, zeros elsewhere. Steps are spread by zeros behind
/// each element.
fn unsliced<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let extents: Vec<i64> = r.x(0).shape().iter().map(|&extent| extent as i64).collect();
    let (start, step) = (r.ints("start"), r.ints("step"));
    if r.ct.shape().elements() == 0 {
        return r.full(0.0, &r.x(0).ty());
    }
    let taken: Vec<i64> = r.ct.shape().iter().map(|&extent| extent as i64).collect();
    let stepped = |axis: &usize| step[*axis] > 1 && taken[*axis] > 1;
    let mut spread = r.ct;
    for axis in (0..extents.len()).filter(stepped) {
        spread = dilate(spread, axis, step[axis]);
    }
    let extent = |axis: usize| spread.shape()[axis] as i64;
    let axes = 0..extents.len();
    let stop = axes.clone().map(|axis| extent(axis).min(extents[axis] - start[axis])).collect();
    let cut = spread.slice(vec![0; extents.len()], stop);
    let high = axes.map(|axis| extents[axis] - start[axis] - cut.shape()[axis] as i64).collect();
    cut.pad(start.to_vec(), high, 0.0)
}

/// `by - 1` zeros behind every element along an axis.
fn dilate<'r>(x: Term<'r>, axis: usize, by: i64) -> Term<'r> {
    let shape = x.shape();
    let rank = shape.rank() + 1;
    let split: Vec<usize> = [&shape[..axis + 1], &[1], &shape[axis + 1..]].concat();
    let mut high = vec![0; rank];
    high[axis + 1] = by - 1;
    let mut joined = shape.to_vec();
    joined[axis] *= by as usize;
    x.reshape(&Shape::new(split)).pad(vec![0; rank], high, 0.0).reshape(&Shape::new(joined))
}
