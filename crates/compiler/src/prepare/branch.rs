//! Branches: both compiled over the same operands and the same scratch.

use super::{Buffers, Inside, RegionImage, Work, inside, outputs, scratch, under};
use crate::Options;
use crate::graph::{Graph, Kind, NodeId};
use crate::region::BranchRegion;
use vramlab_ir::MemorySpace;
use vramlab_ir::kernel::{Body, Branch, ResultSource, Routine};

pub(super) fn compile(
    graph: &mut Graph,
    region: NodeId,
    branch: BranchRegion,
    readers: &[u32],
    donate: &[bool],
    options: &Options,
) -> RegionImage {
    let op = graph.node(region).op;
    let inputs = graph.node(region).inputs.clone();
    let ends: Vec<bool> =
        inputs[1..].iter().map(|&input| ends_here(graph, input, readers, donate)).collect();
    let (branches, taken) = both(&branch, op, &ends, options);
    let mut buffers = Buffers::default();
    let condition = buffers.read(inputs[0]);
    let arguments: Vec<u32> = inputs[1..].iter().map(|&input| buffers.read(input)).collect();
    let outputs = outputs(graph, region);
    let node = |number: u32| {
        let output = outputs.iter().find(|(at, _)| *at == number);
        output.expect("a region has a node for every result").1
    };
    let results: Vec<NodeId> = branch.outputs.iter().map(|&number| node(number)).collect();
    let most = |of: fn(&Routine) -> u64| branches.iter().map(|b| of(&b.routine)).max().unwrap_or(0);
    let temp_bytes = most(|routine| routine.temp_bytes);
    let host_bytes = most(|routine| routine.host_temp_bytes);
    let mut scratch = |bytes: u64, memory| {
        (bytes > 0).then(|| {
            let id = scratch(graph, region, bytes, memory);
            buffers.read(id);
            buffers.write(id)
        })
    };
    let host_scratch = scratch(host_bytes, MemorySpace::PinnedHost);
    let scratch = scratch(temp_bytes, MemorySpace::Device);
    let in_place: Vec<(NodeId, NodeId)> =
        taken.into_iter().map(|(result, operand)| (results[result], inputs[operand + 1])).collect();
    let results: Vec<u32> = results.into_iter().map(|id| buffers.write(id)).collect();
    // Which one runs is not known: the one that does more is counted.
    let work = branches.iter().map(|b| Work::of(&b.routine.kernels));
    let work = work.max_by_key(|w| (w.flops, w.bytes_read)).unwrap_or_default();
    let [on_true, on_false] = branches;
    let mut notes = under("cond, when true", &on_true.notes);
    notes.extend(under("cond, when false", &on_false.notes));
    RegionImage {
        body: Body::Branch(Box::new(Branch {
            condition,
            on_true: on_true.routine,
            on_false: on_false.routine,
            arguments,
            results,
            scratch,
            host_scratch,
        })),
        buffers: buffers.nodes,
        reads: buffers.reads,
        writes: buffers.writes,
        in_place,
        copied: Vec::new(),
        work,
        fused_bytes: on_true.fused_bytes.max(on_false.fused_bytes),
        notes,
        insides: vec![("when true", on_true.text), ("when false", on_false.text)],
    }
}

/// Whether an operand's bytes are nobody's behind the branch.
fn ends_here(graph: &Graph, input: NodeId, readers: &[u32], donate: &[bool]) -> bool {
    let base = graph.base(input);
    let given = match graph.node(base).kind {
        Kind::Param(param) => donate.get(param as usize).copied().unwrap_or(false),
        Kind::Empty => false,
        _ => true,
    };
    given && readers[base.index()] == 1
}

/// Compiles both branches. An operand that ends here is handed to them when both make the same
/// result of its buffer: (result, operand).
fn both(
    branch: &BranchRegion,
    op: &'static str,
    ends: &[bool],
    options: &Options,
) -> ([Inside; 2], Vec<(usize, usize)>) {
    let compiled =
        |donate: &[bool]| branch.branches.clone().map(|graph| inside(graph, op, donate, options));
    let branches = compiled(ends);
    let taken = agreed(&branches[0].routine, &branches[1].routine);
    let offered = |mask: &[bool]| mask.iter().filter(|&&given| given).count();
    if taken.len() == offered(ends) {
        return (branches, taken);
    }
    // What one of them would overwrite for nothing stays as it is.
    let given: Vec<bool> =
        (0..ends.len()).map(|at| taken.iter().any(|&(_, operand)| operand == at)).collect();
    let branches = compiled(&given);
    let taken = agreed(&branches[0].routine, &branches[1].routine);
    (branches, taken)
}

/// The results that both make of the same donated argument.
fn agreed(a: &Routine, b: &Routine) -> Vec<(usize, usize)> {
    let pairs = a.results.iter().zip(&b.results).enumerate();
    let pair = |(result, sources): (usize, (&ResultSource, &ResultSource))| match sources {
        (ResultSource::Donated { argument: a }, ResultSource::Donated { argument: b })
            if a == b =>
        {
            Some((result, *a as usize))
        }
        _ => None,
    };
    pairs.filter_map(pair).collect()
}
