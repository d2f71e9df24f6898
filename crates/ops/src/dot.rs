//! The contraction of two arrays.

use crate::application::Application;
use crate::batch::{Batch, Examples, moved};
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::Rule;
use crate::rule::{self, Term};
use vramlab_ir::lowering::DotAxes;
use vramlab_ir::{Fault, Lowering, Param, Params, Type};

/// The ops of this file.
pub static CONTRACTION: &[&Entry] = &[&DOT];

/// Sums of products over contracted axes, batch by batch.
pub static DOT: Entry = Entry {
    name: "dot",
    doc: "Sums of products over contracted axes, batch by batch; the result's axes are batch, then \
          the free axes of the left, then of the right operand.",
    example: "ones([2, 3]).dot(&ones([3, 4]))",
    operands: Operands::Exactly(2),
    params: &[
        ParamSpec::new("lhs_batch", Format::Ints, "Batch axes of the left operand."),
        ParamSpec::new(
            "rhs_batch",
            Format::Ints,
            "Batch axes of the right operand, in that order.",
        ),
        ParamSpec::new("lhs_contract", Format::Ints, "Contracted axes of the left operand."),
        ParamSpec::new(
            "rhs_contract",
            Format::Ints,
            "Contracted axes of the right operand, in that order.",
        ),
    ],
    meaning: Meaning::Own { infer: infer_dot, lower: |a| Lowering::Dot(axes_of(a)) },
    gradient: Rule(|r| {
        r.give(0, || left(r));
        r.give(1, || right(r));
    }),
    batch: Batch::Rule(batched),
};

fn infer_dot(a: &Application) -> Result<Vec<Type>, Fault> {
    let dtype = a.want(Domain::Accumulator, 0)?;
    a.want_equal(0, 1)?;
    let (lhs, rhs) = (&a.inputs[0], &a.inputs[1]);
    check_axes(a, lhs, "lhs_batch", "lhs_contract")?;
    check_axes(a, rhs, "rhs_batch", "rhs_contract")?;
    let axes = axes_of(a);
    check_extents(a, "batch", &axes.lhs_batch, &axes.rhs_batch)?;
    check_extents(a, "contracted", &axes.lhs_contract, &axes.rhs_contract)?;
    let free = |ty: &Type, batch: &[usize], contract: &[usize]| -> Vec<usize> {
        let used = |axis: &usize| batch.contains(axis) || contract.contains(axis);
        (0..ty.shape.rank()).filter(|axis| !used(axis)).map(|axis| ty.shape[axis]).collect()
    };
    let mut dims: Vec<usize> = axes.lhs_batch.iter().map(|&axis| lhs.shape[axis]).collect();
    dims.extend(free(lhs, &axes.lhs_batch, &axes.lhs_contract));
    dims.extend(free(rhs, &axes.rhs_batch, &axes.rhs_contract));
    Ok(vec![Type::new(dtype, dims)])
}

/// Every axis is in range and has one role.
fn check_axes(a: &Application, ty: &Type, batch: &str, contract: &str) -> Result<(), Fault> {
    let mut seen = Vec::new();
    for &int in a.ints(batch).iter().chain(a.ints(contract)) {
        let axis = a.front_axis(ty, int)?;
        if seen.contains(&axis) {
            return Err(a.argument_fault(format!("axis {axis} of {ty} is named twice")));
        }
        seen.push(axis);
    }
    Ok(())
}

fn check_extents(a: &Application, role: &str, lhs: &[usize], rhs: &[usize]) -> Result<(), Fault> {
    if lhs.len() != rhs.len() {
        let what = format!("{} {role} axes on the left, {} on the right", lhs.len(), rhs.len());
        return Err(a.argument_fault(what));
    }
    for (&l, &r) in lhs.iter().zip(rhs) {
        let (left, right) = (a.inputs[0].shape[l], a.inputs[1].shape[r]);
        if left != right {
            return Err(a.shape_fault(format!("{role} extents {left} and {right} differ")));
        }
    }
    Ok(())
}

fn axes_of(a: &Application) -> DotAxes {
    let axes = |name| a.ints(name).iter().map(|&axis| axis as usize).collect();
    DotAxes {
        lhs_batch: axes("lhs_batch"),
        rhs_batch: axes("rhs_batch"),
        lhs_contract: axes("lhs_contract"),
        rhs_contract: axes("rhs_contract"),
    }
}

/// The axes of one operand by role; `free` in order.
struct Roles {
    batch: Vec<usize>,
    contract: Vec<usize>,
    free: Vec<usize>,
}

fn roles(r: &rule::Rule, operand: usize) -> Roles {
    let side = ["lhs", "rhs"][operand];
    let axes = |role: &str| -> Vec<usize> {
        r.ints(&format!("{side}_{role}")).iter().map(|&axis| axis as usize).collect()
    };
    let (batch, contract) = (axes("batch"), axes("contract"));
    let used = |axis: &usize| batch.contains(axis) || contract.contains(axis);
    let free = (0..r.x(operand).shape().rank()).filter(|axis| !used(axis)).collect();
    Roles { batch, contract, free }
}

fn product<'r>(
    r: &rule::Rule<'r>,
    (lhs, lhs_batch, lhs_contract): (Term<'r>, &[usize], &[usize]),
    (rhs, rhs_batch, rhs_contract): (Term<'r>, &[usize], &[usize]),
) -> Term<'r> {
    let ints = |axes: &[usize]| Param::Ints(axes.iter().map(|&axis| axis as i64).collect());
    let params = Params::new()
        .with("lhs_batch", ints(lhs_batch))
        .with("rhs_batch", ints(rhs_batch))
        .with("lhs_contract", ints(lhs_contract))
        .with("rhs_contract", ints(rhs_contract));
    r.op(&DOT, params, &[lhs, rhs])
}

/// `order[i]` is the axis of the operand that axis i of the product holds.
fn ordered<'r>(product: Term<'r>, order: &[usize]) -> Term<'r> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
    product.transpose(&back)
}

/// The contracted axes of one operand in the order of the other's axes.
fn paired(of: &[usize], by: &[usize]) -> Vec<usize> {
    let mut pairs: Vec<(usize, usize)> = by.iter().copied().zip(of.iter().copied()).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, axis)| axis).collect()
}

/// The cotangent's axes are batch, left free, right free.
fn left<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let (lhs, rhs) = (roles(r, 0), roles(r, 1));
    let batch: Vec<usize> = (0..lhs.batch.len()).collect();
    let behind = lhs.batch.len() + lhs.free.len();
    let right: Vec<usize> = (behind..behind + rhs.free.len()).collect();
    let value = product(r, (r.ct, &batch, &right), (r.x(1), &rhs.batch, &rhs.free));
    let contracted = paired(&lhs.contract, &rhs.contract);
    ordered(value, &[lhs.batch, lhs.free, contracted].concat())
}

fn right<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let (lhs, rhs) = (roles(r, 0), roles(r, 1));
    let batch: Vec<usize> = (0..lhs.batch.len()).collect();
    let left: Vec<usize> = (lhs.batch.len()..lhs.batch.len() + lhs.free.len()).collect();
    let value = product(r, (r.x(0), &lhs.batch, &lhs.free), (r.ct, &batch, &left));
    let contracted = paired(&rhs.contract, &lhs.contract);
    ordered(value, &[rhs.batch, contracted, rhs.free].concat())
}

/// Where one operand only differs between examples, these are rows or columns of one product.
fn batched<'r>(b: &Examples<'r>) -> Term<'r> {
    let sides: Vec<[&str; 2]> = ["lhs", "rhs"]
        .into_iter()
        .enumerate()
        .filter(|(k, _)| b.batched(*k))
        .map(|(_, side)| {
            if side == "lhs" {
                ["lhs_batch", "lhs_contract"]
            } else {
                ["rhs_batch", "rhs_contract"]
            }
        })
        .collect();
    let shifted = b.shifted(sides.as_flattened());
    let both = b.batched(0) && b.batched(1);
    let params = shifted.iter().fold(Params::new(), |params, (name, param)| match param {
        Param::Ints(axes) if both && name.ends_with("batch") => {
            params.with(name, Param::Ints([&[0], axes.as_slice()].concat()))
        }
        _ => params.with(name, param.clone()),
    });
    let product = b.apply(params, &[b.x(0), b.x(1)]);
    let batch = b.params.ints("lhs_batch").map_or(0, <[i64]>::len);
    match (both, b.batched(0)) {
        (true, _) => product,
        (false, true) => moved(product, batch, 0),
        (false, false) => {
            let contract = b.params.ints("lhs_contract").map_or(0, <[i64]>::len);
            moved(product, b.shape(0).rank() - contract, 0)
        }
    }
}
