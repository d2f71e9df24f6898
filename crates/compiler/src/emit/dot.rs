//! Products with their epilogues.

use super::Emitter;
use super::columns::arithmetic;
use super::scalar::Insts;
use crate::graph::Kind;
use vramlab_ir::Reg;
use vramlab_ir::kernel::{Access, Dot, Epilogue, LoopInst};

pub(super) fn emit(emitter: &mut Emitter) -> Dot {
    let group = emitter.group;
    let (batch, rest) = group.dims.split_at(group.dims.len() - 3);
    let &[m, n, k] = rest else { unreachable!("a product's loop ends in m, n and k") };
    let product = group
        .items
        .iter()
        .position(|item| matches!(emitter.graph.node(item.node).kind, Kind::Dot { .. }))
        .expect("a product's group holds it");
    let operands = &group.items[product].operands;
    let without = |mut access: Access, from_end: usize| {
        access.strides.remove(access.strides.len() - from_end);
        access
    };
    let a = without(emitter.read_access(operands[0].request), 2);
    let mut b = without(emitter.read_access(operands[1].request), 3);
    let last = b.strides.len() - 1;
    b.strides.swap(last - 1, last);
    let dtype = emitter.graph.ty(group.items[product].node).dtype;
    let epilogue = epilogue(emitter, product);
    let c = without(emitter.write(0), 1);
    emitter.flops += 2 * group.points() as u64 * k as u64;
    Dot { dtype, batch: batch.to_vec(), m, n, k, a, b, c, epilogue }
}

/// What is done to finished rows of the product, when there is anything.
fn epilogue(emitter: &mut Emitter, product: usize) -> Option<Epilogue> {
    let group = emitter.group;
    if group.items.len() == 1 {
        return None;
    }
    let mut insts = Insts::default();
    let mut registers: Vec<Option<Reg>> = vec![None; group.items.len()];
    for at in (0..group.items.len()).rev() {
        let item = &group.items[at];
        if at == product {
            let dtype = emitter.graph.ty(item.node).dtype;
            registers[at] = Some(insts.push(LoopInst::Kept { slot: 0, dtype }));
            continue;
        }
        let reg = emitter.program(item, &mut insts, &mut |emitter, insts, request| {
            emitter.value(request, insts, &registers)
        });
        registers[at] = Some(reg);
    }
    let result = emitter.value(group.roots[0].request, &mut insts, &registers);
    let insts = insts.finish(&mut [], &mut [result]);
    if let [LoopInst::Kept { .. }] = insts.as_slice() {
        return None;
    }
    emitter.flops += arithmetic(&insts) * group.points() as u64;
    let mut reads = std::mem::take(&mut emitter.reads);
    for read in &mut reads {
        read.strides.pop();
    }
    Some(Epilogue { reads, insts })
}
