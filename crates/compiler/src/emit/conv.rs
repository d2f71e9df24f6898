//! Convolutions.

use super::Emitter;
use crate::graph::Kind;
use vramlab_ir::kernel::{Access, Conv, Space};

pub(super) fn emit(emitter: &mut Emitter) -> Conv {
    let graph = emitter.graph;
    let item = &emitter.group.items[0];
    let node = graph.node(item.node);
    let Kind::Conv(convolution) = &node.kind else {
        unreachable!("a convolution's group holds it alone")
    };
    let dims = &emitter.group.dims;
    let rank = dims.len() / 3;
    let (out, rest) = dims.split_at(rank);
    let (x, w) = rest.split_at(rank);
    let own = |mut access: Access, part: usize| {
        access.strides = access.strides[part * rank..(part + 1) * rank].to_vec();
        access
    };
    let space = convolution.axes.iter().enumerate().map(|(at, &moves)| Space {
        x: x[at + 1],
        taps: w[at],
        results: out[at + 1],
        moves,
    });
    let terms: u64 = w[..rank - 1].iter().map(|&extent| extent as u64).product();
    emitter.flops += 2 * out.iter().map(|&extent| extent as u64).product::<u64>() * terms;
    let operands = &item.operands;
    let left = emitter.read_access(operands[0].request);
    let right = emitter.read_access(operands[1].request);
    let mut written = emitter.write(0);
    written.strides.truncate(rank);
    Conv {
        dtype: node.ty.dtype,
        examples: x[0],
        space: space.collect(),
        channels: x[rank - 1],
        results: out[rank - 1],
        x: own(left, 1),
        w: own(right, 2),
        write: written,
    }
}
