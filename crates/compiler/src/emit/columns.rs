//! Reductions over a dimension that is not the fastest.

use super::Emitter;
use super::scalar::Insts;
use crate::graph::Kind;
use vramlab_ir::kernel::ColumnReduce;
use vramlab_ir::{ReduceKind, Reg};

pub(super) fn emit(emitter: &mut Emitter) -> ColumnReduce {
    let group = emitter.group;
    let mut insts = Insts::default();
    let mut registers: Vec<Option<Reg>> = vec![None; group.items.len()];
    let mut reduced: Vec<(ReduceKind, Reg)> = vec![(ReduceKind::Sum, Reg(0)); group.items.len()];
    for at in (0..group.items.len()).rev() {
        let item = &group.items[at];
        if let Kind::Reduce { kind, .. } = emitter.graph.node(item.node).kind {
            let reg = emitter.value(item.operands[0].request, &mut insts, &registers);
            reduced[at] = (kind, reg);
            continue;
        }
        let reg = emitter.program(item, &mut insts, &mut |emitter, insts, request| {
            emitter.value(request, insts, &registers)
        });
        registers[at] = Some(reg);
    }
    let mut kinds = Vec::new();
    let mut regs = Vec::new();
    let mut writes = Vec::new();
    for root in 0..group.roots.len() {
        let crate::fuse::Source::Item(item) =
            group.requests[group.roots[root].request as usize].source
        else {
            unreachable!("a column reduction stores reductions only")
        };
        let (kind, reg) = reduced[item as usize];
        kinds.push(kind);
        regs.push(reg);
        writes.push(emitter.write(root));
    }
    let insts = insts.finish(&mut [], &mut regs);
    emitter.flops = arithmetic(&insts) * group.points() as u64;
    emitter.flops += group.points() as u64 * kinds.len() as u64;
    let reduces = kinds.into_iter().zip(regs).zip(0..).map(|((k, r), w)| (k, r, w)).collect();
    let (outer, rest) = group.dims.split_at(group.dims.len() - 2);
    ColumnReduce {
        outer: outer.to_vec(),
        reduced: rest[0],
        columns: rest[1],
        reads: std::mem::take(&mut emitter.reads),
        writes,
        insts,
        reduces,
    }
}

/// Arithmetic instructions in a body.
pub(super) fn arithmetic(insts: &[vramlab_ir::kernel::LoopInst]) -> u64 {
    use vramlab_ir::Inst;
    use vramlab_ir::kernel::LoopInst;
    let counts = |inst: &&LoopInst| matches!(inst, LoopInst::Scalar(Inst::Op { .. }));
    insts.iter().filter(counts).count() as u64
}
