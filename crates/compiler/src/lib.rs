//! `compiler`: programs to kernel images.
//!
//! Place in the flow: a traced [`Func`] comes in with a donation mask and [`Options`]; a [`Program`]
//! goes out: kernel images in order, a place for every buffer, and the words for `%explain`. In
//! between: inline calls, simplify, fuse, schedule, plan.
//!
//! Absent on purpose: the op table (passes match on [`vramlab_ir::Lowering`], so none can name an op),
//! devices, IO, clocks, globals, locks. The same input gives the same program, so `Func`, mask and
//! options are the compile cache's key.

mod emit;
mod form;
mod fuse;
mod graph;
pub mod plan;
mod schedule;

use emit::Draft;
use fuse::Level;
use graph::{Graph, Kind};
use std::sync::Arc;
use vramlab_ir::kernel::Slot;
use vramlab_ir::{Fault, Func, Program};

/// What changes the code that comes out: part of the compile cache's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Whether loops are joined at all.
    pub fuse: bool,
    /// The longest row of which intermediate elements are kept between passes, and the longest that
    /// is reduced and used in one kernel: what fits in a core's second-level cache.
    pub max_kept_row_bytes: usize,
    /// Search steps of the temporary block's packing before the best found is taken.
    pub packing_steps: u64,
    /// Whether [`Program::stages`] and [`Program::notes`] are written. Off for one-op programs of
    /// eager calls, whose compile time counts.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fuse: true, max_kept_row_bytes: 256 << 10, packing_steps: 200_000, explain: true }
    }
}

/// Compiles `func`. `donate` says per parameter whether its buffer may be reused.
///
/// # Errors
/// A fault when the donation mask does not fit the parameters.
pub fn compile(func: &Arc<Func>, donate: &[bool], options: &Options) -> Result<Program, Fault> {
    let graph = Graph::trace(func)?;
    let level = if options.fuse { Level::Full } else { Level::Off };
    Ok(lower(func, &graph, donate, level, options))
}

fn lower(
    func: &Arc<Func>,
    graph: &Graph,
    donate: &[bool],
    level: Level,
    options: &Options,
) -> Program {
    let mut fused = fuse::fuse(graph, level, options);
    let slots = Slots::assign(graph, &fused.stored);
    let drafts: Vec<Draft> = fused
        .groups
        .iter_mut()
        .map(|group| emit::draft(graph, group, &slots.of_node, options))
        .collect();
    let donated: Vec<bool> =
        (0..graph.params.len()).map(|i| donate.get(i).copied().unwrap_or(false)).collect();
    let results: Vec<u32> =
        graph.results.iter().map(|&r| slots.of_node[graph.base(r).index()]).collect();
    let lives = schedule::Lives { bytes: &slots.bytes, donated: &donated, results: &results };
    let drafts = schedule::schedule(drafts, &lives);
    let plan = plan::assign(&drafts, &slots.bytes, &donated, &results, options);
    let places = plan.places;
    let slots = slots
        .nodes
        .iter()
        .zip(places)
        .map(|(&id, place)| Slot { ty: graph.ty(id).clone(), place, label: label(graph, id) })
        .collect();
    Program {
        func: func.clone(),
        slots,
        kernels: drafts
            .into_iter()
            .zip(&plan.dropped)
            .filter(|(_, dropped)| !**dropped)
            .map(|(draft, _)| draft.kernel)
            .collect(),
        results: plan.results,
        fresh_bytes: plan.fresh_bytes,
        temp_bytes: plan.temp_bytes,
        donations: plan.donations,
        peak_bytes: plan.peak_bytes,
        stages: Vec::new(),
        fused_bytes: fused.fused_bytes,
        notes: fused.notes,
    }
}

fn label(graph: &Graph, id: graph::NodeId) -> String {
    match graph.node(id).kind {
        Kind::Param(index) => format!("argument {index}"),
        _ => graph.node(id).op.to_string(),
    }
}

/// The buffers of a program: one a parameter, then one a stored value.
struct Slots {
    of_node: Vec<u32>,
    nodes: Vec<graph::NodeId>,
    bytes: Vec<u64>,
}

impl Slots {
    fn assign(graph: &Graph, stored: &[bool]) -> Slots {
        let mut slots = Slots {
            of_node: vec![u32::MAX; graph.nodes.len()],
            nodes: Vec::new(),
            bytes: Vec::new(),
        };
        let stored = (0..graph.nodes.len() as u32)
            .map(graph::NodeId)
            .filter(|id| stored[id.index()] && !matches!(graph.node(*id).kind, Kind::Param(_)));
        for id in graph.params.iter().copied().chain(stored) {
            slots.of_node[id.index()] = slots.nodes.len() as u32;
            slots.nodes.push(id);
            slots.bytes.push(graph.ty(id).bytes());
        }
        slots
    }
}
