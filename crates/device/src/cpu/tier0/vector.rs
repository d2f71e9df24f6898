//! Matrix times vector: a reduction of products.

use super::columns::Columns;
use super::dot::Method;
use super::rows::Rows;
use crate::LaunchError;
use crate::cpu::isa::Isa;
use vramlab_ir::kernel::{Access, ColumnReduce, Dot as Image, LoopInst, Per, RowLoop, Sink, Stage};
use vramlab_ir::{DType, Inst, Kernel, ReduceKind, Reg, ScalarOp};

/// Matrix times vector as a reduction of products, along whichever dimension lies dense in memory.
pub(super) fn vector(kernel: &Kernel, image: &Image, isa: Isa) -> Result<Method, LaunchError> {
    let rank = image.batch.len();
    // The matrix is the operand of the side that is no vector; both are seen as [batch…, row, k].
    let rows = if image.n == 1 { image.m } else { image.n };
    let seen = |access: &Access, row: isize, k: isize| {
        let mut seen = access.clone();
        seen.strides.truncate(rank);
        seen.strides.extend([row, k]);
        seen
    };
    let (a, b) = (&image.a.strides[rank..], &image.b.strides[rank..]);
    let (a_row, b_row) = if image.n == 1 { (a[0], 0) } else { (0, b[1]) };
    let reads = vec![seen(&image.a, a_row, a[1]), seen(&image.b, b_row, b[0])];
    let write = seen(&image.c, 1, 0);
    let across = if image.n == 1 { a[0] == 1 } else { b[1] == 1 };
    let along = if image.n == 1 { a[1] == 1 } else { b[0] == 1 };
    let (insts, product) = products(image.dtype);
    let wide = if product_dtype(image.dtype) != image.dtype { DType::F32 } else { image.dtype };
    if across && !along {
        let swap = |mut access: Access| {
            access.strides.swap(rank, rank + 1);
            access
        };
        let image = ColumnReduce {
            outer: image.batch.clone(),
            reduced: image.k,
            columns: rows,
            reads: reads.into_iter().map(swap).collect(),
            writes: vec![swap(write)],
            insts,
            reduces: vec![(ReduceKind::Sum, product, 0)],
        };
        return Ok(Method::Columns(Box::new(Columns::new(kernel, &image, isa)?)));
    }
    let mut outer = image.batch.clone();
    outer.push(rows);
    let sum = LoopInst::RowScalar { slot: 0, dtype: wide };
    let mut last = vec![sum];
    if wide != image.dtype {
        let arg = Reg(0);
        last.push(LoopInst::Scalar(Inst::Convert { from: wide, to: image.dtype, arg }));
    }
    let result = Reg(last.len() as u32 - 1);
    let image = RowLoop {
        outer,
        columns: image.k,
        reads,
        writes: vec![write],
        stages: vec![
            Stage {
                per: Per::Columns,
                insts,
                sinks: vec![Sink::Reduce { kind: ReduceKind::Sum, reg: product, slot: 0 }],
            },
            Stage {
                per: Per::Row,
                insts: last,
                sinks: vec![Sink::Store { write: 0, reg: result }],
            },
        ],
        kept: 0,
        row_scalars: 1,
    };
    Ok(Method::Rows(Box::new(Rows::new(kernel, &image, isa)?)))
}

fn product_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// `a · b`, 16-bit floats in f32; with the register of the product.
fn products(dtype: DType) -> (Vec<LoopInst>, Reg) {
    let work = product_dtype(dtype);
    let mut insts: Vec<LoopInst> =
        (0..2).map(|input| LoopInst::Scalar(Inst::Input { input, dtype })).collect();
    let mut args = vec![Reg(0), Reg(1)];
    if work != dtype {
        for arg in &mut args {
            let convert = Inst::Convert { from: dtype, to: work, arg: *arg };
            insts.push(LoopInst::Scalar(convert));
            *arg = Reg(insts.len() as u32 - 1);
        }
    }
    insts.push(LoopInst::Scalar(Inst::Op { op: ScalarOp::Mul, dtype: work, args }));
    let product = Reg(insts.len() as u32 - 1);
    (insts, product)
}
