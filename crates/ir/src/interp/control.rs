//! Loops, one iteration after the other.

use super::{Tensor, owned, run};
use crate::fault::Fault;
use crate::func::Type;
use crate::lowering::{ScanLoop, WhileLoop};

pub(super) fn scan(
    scan: &ScanLoop,
    inputs: &[&Tensor],
    results: &[Type],
) -> Result<Vec<Tensor>, Fault> {
    let (consts, rest) = inputs.split_at(scan.consts);
    let (first, xs) = rest.split_at(scan.carries);
    let mut carries = owned(first);
    let mut stacked: Vec<Tensor> = results[scan.carries..]
        .iter()
        .map(|ty| Tensor { ty: ty.clone(), bytes: vec![0; ty.bytes() as usize] })
        .collect();
    for step in 0..scan.length {
        let at = if scan.reverse { scan.length - 1 - step } else { step };
        let mut arguments = owned(consts);
        arguments.append(&mut carries);
        arguments.extend(xs.iter().map(|xs| slice(xs, at)));
        carries = run(&scan.body, &arguments)?;
        let slices = carries.split_off(scan.carries);
        for (stacked, slice) in stacked.iter_mut().zip(slices) {
            let size = slice.bytes.len();
            stacked.bytes[at * size..][..size].copy_from_slice(&slice.bytes);
        }
    }
    carries.append(&mut stacked);
    Ok(carries)
}

/// Slice `at` of the leading axis.
fn slice(array: &Tensor, at: usize) -> Tensor {
    let ty = Type::new(array.ty.dtype, &array.ty.shape[1..]).within(array.ty.memory);
    let size = ty.bytes() as usize;
    let bytes = array.bytes[at * size..][..size].to_vec();
    Tensor { ty, bytes }
}

pub(super) fn repeat(looped: &WhileLoop, inputs: &[&Tensor]) -> Result<Vec<Tensor>, Fault> {
    let (cond_consts, rest) = inputs.split_at(looped.cond_consts);
    let (body_consts, first) = rest.split_at(looped.body_consts);
    let with = |consts: &[&Tensor], carries: &[Tensor]| {
        let mut arguments = owned(consts);
        arguments.extend_from_slice(carries);
        arguments
    };
    let mut carries = owned(first);
    while run(&looped.cond, &with(cond_consts, &carries))?[0].get(0).bits() != 0 {
        carries = run(&looped.body, &with(body_consts, &carries))?;
    }
    Ok(carries)
}
