//! The contraction of two arrays.

use crate::application::Application;
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use vramlab_ir::lowering::DotAxes;
use vramlab_ir::{Fault, Lowering, Type};

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
