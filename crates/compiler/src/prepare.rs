//! Loops and branches made ready for fusion of the graph around them: what no result needs is left
//! out, then their insides are compiled, inner ones first, to images over nodes of the graph.
//!
//! The buffers that a loop works in beside its results are nodes too ([`Kind::Scratch`]), so that the
//! plan of the program around it places them like any other temporary.

mod branch;
mod looped;
mod prune;

use crate::graph::{Graph, Kind, NodeId};
use crate::region::Region;
use crate::{Lowered, Options, simplify, text};
use vramlab_ir::kernel::{Body, Kernel, Routine};
use vramlab_ir::{DType, MemorySpace, Type};

/// A loop's or branch's image, whose buffers are nodes of the graph around it.
#[derive(Clone, Debug)]
pub(crate) struct RegionImage {
    /// Its buffers are positions in `buffers`.
    pub body: Body,
    pub buffers: Vec<NodeId>,
    pub reads: Vec<NodeId>,
    /// Results and scratch.
    pub writes: Vec<NodeId>,
    /// (written, read): the write may take over the read's bytes.
    pub in_place: Vec<(NodeId, NodeId)>,
    /// Each first value that a copy is made of when it cannot become the carry's storage.
    pub copied: Vec<(NodeId, NodeId)>,
    pub work: Work,
    pub fused_bytes: u64,
    /// What the passes said inside.
    pub notes: Vec<String>,
    /// The graphs inside as text, each under its name.
    pub insides: Vec<(&'static str, String)>,
}

/// What one run does, each iteration counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub flops: u64,
}

impl Work {
    fn of(kernels: &[Kernel]) -> Work {
        let sum = |of: fn(&Kernel) -> u64| {
            kernels.iter().map(of).fold(0, |sum: u64, more| sum.saturating_add(more))
        };
        Work {
            bytes_read: sum(|kernel| kernel.bytes_read),
            bytes_written: sum(|kernel| kernel.bytes_written),
            flops: sum(|kernel| kernel.flops),
        }
    }

    fn times(self, n: u64) -> Work {
        Work {
            bytes_read: self.bytes_read.saturating_mul(n),
            bytes_written: self.bytes_written.saturating_mul(n),
            flops: self.flops.saturating_mul(n),
        }
    }
}

/// Makes every region that a result depends on ready. `donate` says of each parameter of the graph
/// whether its buffer may be reused.
pub(crate) fn prepare(graph: &mut Graph, donate: &[bool], options: &Options) {
    if graph.regions.is_empty() {
        return;
    }
    wait_once(graph);
    let live = prune::prune(graph);
    let readers = readers(graph, &live);
    graph.images = vec![None; graph.regions.len()];
    for (at, _) in live.iter().enumerate().filter(|(_, live)| **live) {
        let Kind::Region(region) = graph.nodes[at].kind else { continue };
        let id = NodeId(at as u32);
        let inside = std::mem::replace(
            &mut graph.regions[region as usize],
            Region::Branch(crate::region::BranchRegion::default()),
        );
        let image = match inside {
            Region::Loop(looped) => looped::compile(graph, id, looped, options),
            Region::Branch(branch) => branch::compile(graph, id, branch, &readers, donate, options),
        };
        graph.images[region as usize] = Some(image);
    }
}

/// A barrier before a region is stored, as a copy. Where another operand holds the region back for the same
/// nodes, the value is read where it lies. First values are copied anyway.
fn wait_once(graph: &mut Graph) {
    if graph.nodes.iter().all(|node| node.kind != Kind::Barrier) {
        return;
    }
    // What each node waits for, by the first barrier with that list.
    let mut lists: Vec<NodeId> = Vec::new();
    let mut waits: Vec<Vec<usize>> = Vec::with_capacity(graph.nodes.len());
    for at in 0..graph.nodes.len() {
        if let Kind::Region(region) = graph.nodes[at].kind {
            unwrap_barriers(graph, at, region, &waits);
        }
        let node = &graph.nodes[at];
        let mut own: Vec<usize> = Vec::new();
        if node.kind == Kind::Barrier {
            let same = |known: &NodeId| graph.node(*known).inputs[1..] == node.inputs[1..];
            own.push(lists.iter().position(same).unwrap_or(lists.len()));
            if own[0] == lists.len() {
                lists.push(NodeId(at as u32));
            }
        }
        for input in &node.inputs {
            own.extend(&waits[input.index()]);
        }
        own.sort_unstable();
        own.dedup();
        waits.push(own);
    }
}

fn unwrap_barriers(graph: &mut Graph, at: usize, region: u32, waits: &[Vec<usize>]) {
    let inputs = graph.nodes[at].inputs.clone();
    let first_value = |at: usize| match &graph.regions[region as usize] {
        Region::Loop(looped) => looped.carries.iter().any(|carry| carry.init == at as u32),
        Region::Branch(_) => false,
    };
    let held = |at: &usize| graph.node(inputs[*at]).kind == Kind::Barrier && !first_value(*at);
    let mut barriers: Vec<usize> = (0..inputs.len()).filter(held).collect();
    // The smallest stays if one has to.
    barriers.sort_by_key(|&at| std::cmp::Reverse(graph.ty(inputs[at]).bytes()));
    for input in barriers {
        let value = graph.node(inputs[input]).inputs[0];
        let rest = |other: &NodeId| waits[other.index()].as_slice();
        let others = graph.nodes[at].inputs.iter().enumerate().filter(|(other, _)| *other != input);
        let still: Vec<usize> = others.flat_map(|(_, other)| rest(other)).copied().collect();
        if waits[inputs[input].index()].iter().all(|list| still.contains(list)) {
            graph.nodes[at].inputs[input] = value;
        }
    }
}

/// How often each node's bytes are read by live nodes, or are a result.
fn readers(graph: &Graph, live: &[bool]) -> Vec<u32> {
    let mut readers = vec![0; graph.nodes.len()];
    let nodes = graph.nodes.iter().enumerate();
    let reading = nodes.filter(|(at, node)| live[*at] && node.kind != Kind::Reshape);
    let inputs = reading.flat_map(|(_, node)| &node.inputs);
    for &input in inputs.chain(&graph.results) {
        readers[graph.base(input).index()] += 1;
    }
    readers
}

/// The output nodes of a region by their numbers.
fn outputs(graph: &Graph, region: NodeId) -> Vec<(u32, NodeId)> {
    // They stand behind their region.
    let behind = graph.nodes.iter().enumerate().skip(region.index());
    let output = |(at, node): (usize, &crate::graph::Node)| match node.kind {
        Kind::Output(number) if node.inputs == [region] => Some((number, NodeId(at as u32))),
        _ => None,
    };
    behind.filter_map(output).collect()
}

/// A node for bytes that a region works in.
fn scratch(graph: &mut Graph, region: NodeId, bytes: u64, memory: MemorySpace) -> NodeId {
    let ty = Type::new(DType::U8, [bytes as usize]).within(memory);
    let op = graph.node(region).op;
    graph.push(Kind::Scratch, vec![region], ty, op)
}

/// What compiling an inside gives.
struct Inside {
    routine: Routine,
    fused_bytes: u64,
    notes: Vec<String>,
    text: String,
}

/// Compiles the inside of a region. `donate` says of each of its parameters whether its buffer may
/// be reused.
fn inside(mut graph: Graph, name: &str, donate: &[bool], options: &Options) -> Inside {
    prepare(&mut graph, donate, options);
    lowered(graph, name, donate, options)
}

/// What comes behind [`prepare`].
fn lowered(graph: Graph, name: &str, donate: &[bool], options: &Options) -> Inside {
    let lowered = Lowered::best(&graph, donate, options);
    let text = if options.explain { text::graph(&graph) } else { String::new() };
    let (fused_bytes, notes) = (lowered.fused_bytes(&graph), lowered.notes(&graph, options));
    let routine = lowered.routine(name, &graph);
    Inside { routine, fused_bytes, notes, text }
}

/// Notes of an inside, under its name.
fn under<'n>(name: &str, notes: impl IntoIterator<Item = &'n String>) -> Vec<String> {
    notes.into_iter().map(|note| format!("in {name}: {note}")).collect()
}

/// The image's buffers while it is put together.
#[derive(Default)]
struct Buffers {
    nodes: Vec<NodeId>,
    reads: Vec<NodeId>,
    writes: Vec<NodeId>,
}

impl Buffers {
    fn add(&mut self, id: NodeId) -> u32 {
        let at = self.nodes.iter().position(|&known| known == id).unwrap_or_else(|| {
            self.nodes.push(id);
            self.nodes.len() - 1
        });
        at as u32
    }

    fn read(&mut self, id: NodeId) -> u32 {
        if !self.reads.contains(&id) {
            self.reads.push(id);
        }
        self.add(id)
    }

    fn write(&mut self, id: NodeId) -> u32 {
        if !self.writes.contains(&id) {
            self.writes.push(id);
        }
        self.add(id)
    }
}

/// The graph inside, in its simplest form.
fn simplified(graph: &mut Graph) {
    *graph = simplify::simplify(std::mem::take(graph));
}
