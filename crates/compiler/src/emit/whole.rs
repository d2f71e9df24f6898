//! Nodes that are kernels by themselves: running sums, scatter-add, copies to and from the host, loops
//! and branches.

use super::{Draft, name};
use crate::fuse::Group;
use crate::graph::{self, Graph, Kind, NodeId};
use crate::prepare::RegionImage;
use vramlab_ir::kernel::{Body, Cumulative, Scatter, Start, Transfer, TransferEnd};
use vramlab_ir::{Kernel, Type};

pub(super) fn draft(graph: &Graph, group: &Group, slots: &[u32]) -> Draft {
    let id = group.order;
    let slot = |id: NodeId| slots[graph.base(id).index()];
    match &graph.node(id).kind {
        Kind::Region(region) => {
            let image = graph.images[*region as usize].as_ref();
            self::region(graph, group, &slot, image.expect("a live region was compiled"))
        }
        _ => array(graph, group, &slot),
    }
}

/// A kernel over whole arrays.
fn array(graph: &Graph, group: &Group, slot: &dyn Fn(NodeId) -> u32) -> Draft {
    let id = group.order;
    let node = graph.node(id);
    let dtype = node.ty.dtype;
    let elements = graph.elements(id) as u64;
    let bytes = |id: NodeId| graph.ty(id).bytes();
    let (body, inputs, work) = match node.kind {
        Kind::Cumulative { kind, reverse, outer, length, inner } => (
            Body::Cumulative(Cumulative {
                kind,
                dtype,
                reverse,
                outer,
                length,
                inner,
                read: 0,
                write: 1,
            }),
            &node.inputs[..],
            (bytes(node.inputs[0]), bytes(id), elements),
        ),
        Kind::Scatter { outer, extent, count, inner } => {
            let updates = node.inputs[2];
            let read = bytes(node.inputs[1]) + 2 * bytes(updates);
            (
                Body::Scatter(Scatter {
                    dtype,
                    outer,
                    extent,
                    count,
                    inner,
                    indices: 0,
                    updates: 1,
                    write: 2,
                }),
                &node.inputs[1..],
                (read, bytes(updates), graph.elements(updates) as u64),
            )
        }
        Kind::Transfer(copy) => {
            // A stack that is copied into is only written: its buffer is the node's own.
            let inputs = &node.inputs[copy.source()..copy.reads()];
            let [read, written] = [graph.ty(inputs[0]), &node.ty];
            let bytes = read.bytes().min(written.bytes());
            let slice = |stack: &Type| Start {
                buffer: 1,
                limit: stack.shape[0] as i64 - 1,
                stride: bytes as isize,
            };
            let (from, into) = (copy == graph::Transfer::From, copy == graph::Transfer::Into);
            let transfer = Transfer {
                bytes,
                to: written.memory,
                read: TransferEnd { buffer: 0, start: from.then(|| slice(read)) },
                write: TransferEnd {
                    buffer: inputs.len() as u32,
                    start: into.then(|| slice(written)),
                },
            };
            // Traffic of device memory: one side of the copy.
            let of = |ty: &Type| if ty.is_host() { 0 } else { bytes };
            let work = (of(read), of(written), 0);
            (Body::Transfer(transfer), inputs, work)
        }
        _ => unreachable!("no other node is a kernel by itself"),
    };
    let mut reads: Vec<u32> = inputs.iter().map(|&input| slot(input)).collect();
    let write = slot(id);
    let buffers = [reads.as_slice(), &[write]].concat();
    let in_place = match body {
        Body::Cumulative(_) => vec![(write, reads[0])],
        Body::Transfer(_) if node.kind == Kind::Transfer(graph::Transfer::Into) => {
            reads.push(slot(node.inputs[0]));
            vec![(write, reads[2])]
        }
        _ => Vec::new(),
    };
    reads.sort_unstable();
    reads.dedup();
    let (bytes_read, bytes_written, flops) = work;
    let name = name(graph, &[id]);
    let kernel = Kernel { name, buffers, body, bytes_read, bytes_written, flops };
    let after_slots = group.after_nodes.iter().map(|&node| slot(node)).collect();
    Draft { after_slots, ..of_group(group, kernel, reads, vec![write], in_place) }
}

/// A loop or a branch, its buffers' nodes replaced by slots.
fn region(
    graph: &Graph,
    group: &Group,
    slot: &dyn Fn(NodeId) -> u32,
    image: &RegionImage,
) -> Draft {
    let each = |ids: &[NodeId]| {
        let mut slots: Vec<u32> = ids.iter().map(|&id| slot(id)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    };
    let writes = each(&image.writes);
    let mut reads = each(&image.reads);
    // A result that nobody reads ends with the loop.
    let unread = |id: &&NodeId| matches!(graph.node(**id).kind, Kind::Output(_));
    for &id in image.writes.iter().filter(unread) {
        if !reads.contains(&slot(id)) {
            reads.push(slot(id));
        }
    }
    let kernel = Kernel {
        name: graph.node(group.order).op.to_string(),
        buffers: image.buffers.iter().map(|&id| slot(id)).collect(),
        body: image.body.clone(),
        bytes_read: image.work.bytes_read,
        bytes_written: image.work.bytes_written,
        flops: image.work.flops,
    };
    let in_place = image.in_place.iter().map(|&(write, read)| (slot(write), slot(read))).collect();
    of_group(group, kernel, reads, writes, in_place)
}

fn of_group(
    group: &Group,
    kernel: Kernel,
    reads: Vec<u32>,
    writes: Vec<u32>,
    in_place: Vec<(u32, u32)>,
) -> Draft {
    Draft {
        kernel,
        reads,
        writes,
        after: group.after.clone(),
        after_slots: Vec::new(),
        copies: None,
        in_place,
        order: group.order,
        nodes: vec![group.order],
    }
}
