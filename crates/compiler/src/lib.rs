//! `compiler`: programs to kernel images.
//!
//! Place in the flow: a traced [`Func`] comes in with a donation mask and [`Options`]; a [`Program`]
//! goes out: kernel images in order, a place for every buffer, and the words for `%explain`. In
//! between: inline calls, simplify, compile the insides of loops and branches the same way, fuse,
//! schedule, plan.
//!
//! Absent on purpose: the op table (passes match on [`vramlab_ir::Lowering`], so none can name an op),
//! devices, IO, clocks, globals, locks. The same input gives the same program, so `Func`, mask and
//! options are the compile cache's key.

mod algebra;
mod emit;
mod form;
mod fuse;
mod graph;
mod mask;
pub mod plan;
mod prepare;
mod region;
mod remat;
mod schedule;
mod simplify;
mod text;

use emit::Draft;
use fuse::{Fused, Level};
use graph::{Graph, Kind, NodeId};
use std::sync::Arc;
use vramlab_ir::kernel::{Place, Routine, Slot};
use vramlab_ir::{Fault, Func, Leaner, Program, arg_name};

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
    /// The most bytes at the peak, arguments and results included: above it, values are dropped and
    /// computed again.
    pub memory_limit: Option<u64>,
    /// What is compiled instead, the first that fits, where dropping values is not enough.
    pub leaner: Vec<Leaner>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fuse: true,
            max_kept_row_bytes: 256 << 10,
            packing_steps: 20_000,
            explain: true,
            memory_limit: None,
            leaner: Vec::new(),
        }
    }
}

/// A lower level of fusion must save this part of the peak to be worth its loops, and so many bytes.
const WORTH: u64 = 256;
const WORTH_BYTES: u64 = 4096;
/// Programs with more values than this are compiled at one level only.
const LEVELLED: usize = 12_000;

/// Compiles `func`. `donate` says per parameter whether its buffer may be reused.
///
/// # Errors
/// A fault when the program holds a call that does not fit its arguments, or when it does not fit
/// under [`Options::memory_limit`].
pub fn compile(func: &Arc<Func>, donate: &[bool], options: &Options) -> Result<Program, Fault> {
    let mut graph = simplify::simplify(Graph::trace(func)?);
    if let Some(limit) = options.memory_limit {
        return limited(func, graph, donate, options, limit);
    }
    prepare::prepare(&mut graph, donate, options);
    let lowered = Lowered::best(&graph, donate, options);
    Ok(lowered.program(func, &graph, options))
}

/// `func` under a limit, or the first that is leaner and fits.
fn limited(
    func: &Arc<Func>,
    graph: Graph,
    donate: &[bool],
    options: &Options,
    limit: u64,
) -> Result<Program, Fault> {
    let first = match remat::fit(&func.name, &graph, donate, options, limit) {
        Ok((graph, lowered)) => return Ok(lowered.program(func, &graph, options)),
        Err(refused) => refused,
    };
    let mut least = (first.peak, first.fault.clone());
    for leaner in options.leaner.iter().filter(|_| first.reachable) {
        let graph = simplify::simplify(Graph::trace(&leaner.func)?);
        match remat::fit(&func.name, &graph, donate, options, limit) {
            Ok((graph, mut lowered)) => {
                if options.explain {
                    let note = remat::said_of(leaner.how, &lowered, &first, limit);
                    lowered.fused.notes.insert(0, note);
                }
                let shown = Arc::clone(&leaner.func);
                // The program stands for the function that was asked for.
                let program = lowered.program(&shown, &graph, options);
                return Ok(Program { func: func.clone(), ..program });
            }
            Err(refused) if refused.peak < least.0 => least = (refused.peak, refused.fault),
            Err(_) => {}
        }
    }
    Err(least.1)
}

/// A program whose buffers are placed.
struct Lowered {
    fused: Fused,
    slots: Slots,
    drafts: Vec<Draft>,
    plan: plan::Plan,
}

impl Lowered {
    /// The way to fuse that needs the fewest bytes.
    fn best(graph: &Graph, donate: &[bool], options: &Options) -> Lowered {
        let level = if options.fuse { Level::Full } else { Level::Off };
        let mut lowered = Lowered::new(graph, donate, level, options);
        if options.fuse && lowered.plan.could_be_lower() && graph.nodes.len() <= LEVELLED {
            for level in [Level::Frugal, Level::Off] {
                let other = Lowered::new(graph, donate, level, options);
                let peak = other.plan.peak_bytes;
                if peak + (peak / WORTH).max(WORTH_BYTES) < lowered.plan.peak_bytes {
                    lowered = other;
                    lowered.fused.notes.insert(0, level.chosen().into());
                }
            }
        }
        lowered
    }

    fn new(graph: &Graph, donate: &[bool], level: Level, options: &Options) -> Lowered {
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
        let plan = plan::assign(&drafts, &slots, &donated, &results, options);
        Lowered { fused, slots, drafts, plan }
    }

    fn program(mut self, func: &Arc<Func>, graph: &Graph, options: &Options) -> Program {
        self.drop_kernels();
        let slots = self.placed(graph);
        let (fused_bytes, notes) = (self.fused_bytes(graph), self.notes(graph, options));
        let stages = match options.explain {
            true => self.stages(func, graph, &slots),
            false => Vec::new(),
        };
        Program {
            func: func.clone(),
            slots,
            kernels: self.drafts.into_iter().map(|draft| draft.kernel).collect(),
            results: self.plan.results,
            fresh_bytes: self.plan.fresh_bytes,
            fresh_memory: self.plan.fresh_memory,
            temp_bytes: self.plan.temp_bytes,
            host_temp_bytes: self.plan.host_temp_bytes,
            donations: self.plan.donations,
            peak_bytes: self.plan.peak_bytes,
            stages,
            fused_bytes,
            notes,
        }
    }

    /// The inside of a loop or a branch.
    fn routine(mut self, name: &str, graph: &Graph) -> Routine {
        self.drop_kernels();
        let slots = self.placed(graph);
        Routine {
            name: name.to_string(),
            slots,
            kernels: self.drafts.into_iter().map(|draft| draft.kernel).collect(),
            results: self.plan.results,
            fresh_bytes: self.plan.fresh_bytes,
            temp_bytes: self.plan.temp_bytes,
            host_temp_bytes: self.plan.host_temp_bytes,
        }
    }

    /// Leaves out the kernels that copy a value to where it already is.
    fn drop_kernels(&mut self) {
        let dropped = &self.plan.dropped;
        let mut at = 0..;
        self.drafts.retain(|_| !dropped[at.next().expect("endless")]);
    }

    fn placed(&self, graph: &Graph) -> Vec<Slot> {
        let slot =
            |(&id, &place)| Slot { ty: graph.ty(id).clone(), place, label: label(graph, id) };
        self.slots.nodes.iter().zip(&self.plan.places).map(slot).collect()
    }

    /// Bytes of intermediates that no kernel stores, in one iteration where there are several.
    fn fused_bytes(&self, graph: &Graph) -> u64 {
        let inside: u64 = graph.images.iter().flatten().map(|image| image.fused_bytes).sum();
        self.fused.fused_bytes + inside
    }

    /// What the passes said, here and in loops and branches.
    fn notes(&self, graph: &Graph, options: &Options) -> Vec<String> {
        let mut notes = self.fused.notes.clone();
        if !options.explain {
            return notes;
        }
        for image in graph.images.iter().flatten() {
            let copied = image.copied.iter().filter_map(|&pair| self.copied(graph, pair));
            notes.extend(copied);
            notes.extend(image.notes.iter().cloned());
        }
        notes
    }

    /// Why a loop's first value is copied, when it is.
    fn copied(&self, graph: &Graph, (storage, init): (NodeId, NodeId)) -> Option<String> {
        let place = |id: NodeId| {
            let slot = self.slots.of_node[graph.base(id).index()];
            self.plan.places.get(slot as usize).copied()
        };
        let (from, to) = (place(init)?, place(storage)?);
        if from == to {
            return None;
        }
        let why = match graph.node(graph.base(init)).kind {
            Kind::Param(param) if !self.donated(param) => {
                format!("{} is not donated", arg_name(&graph.arg_names, param as usize))
            }
            _ => "its first value is read elsewhere too".to_string(),
        };
        let ty = graph.ty(init);
        let op = graph.node(graph.node(storage).inputs[0]).op;
        Some(format!("{op}: the carry {ty} begins as a copy: {why}"))
    }

    fn donated(&self, param: u32) -> bool {
        self.plan.donations.iter().any(|donation| donation.argument == param)
    }

    fn stages(&self, func: &Func, graph: &Graph, slots: &[Slot]) -> Vec<(String, String)> {
        let drafts: Vec<&Draft> = self.drafts.iter().collect();
        let lives = self.lives();
        let alive = self.alive(&lives);
        let stage = |name: &str, text: String| (name.to_string(), text);
        let mut stages = vec![
            stage("trace", func.to_string()),
            stage("simplify", text::graph(graph)),
            stage(
                "fuse",
                text::kernels(graph, &drafts, &self.fused.stored, self.fused.fused_bytes),
            ),
            stage("schedule", text::schedule(&drafts, &alive)),
            stage("plan", text::plan(slots, &lives, drafts.len()) + &self.totals(graph)),
        ];
        let gradient = text::gradient(graph, &drafts, slots, &lives, (self.beside(graph), &alive));
        stages.extend(gradient.map(|text| stage("gradient", text)));
        stages
    }

    /// Floating-point operations of one run.
    fn flops(&self) -> u64 {
        self.drafts.iter().map(|draft| draft.kernel.flops).fold(0, u64::saturating_add)
    }

    /// The kernel that runs while the most bytes are in use, beside arguments.
    fn peak_at(&self) -> usize {
        let alive = self.alive(&self.lives());
        let most = alive.iter().copied().max().unwrap_or(0);
        alive.iter().position(|&bytes| bytes == most).unwrap_or(0)
    }

    /// Bytes in use while each kernel runs, beside arguments. Values that share bytes count once.
    fn alive(&self, lives: &[text::Life]) -> Vec<u64> {
        // Each buffer of a result is a block of its own, behind those before it.
        let address = |slot: usize| match self.plan.places[slot] {
            Place::Temporary { offset } => Some((0, offset)),
            Place::Result { index } => Some((1 + index, 0)),
            Place::Argument { .. } | Place::Host { .. } => None,
        };
        let mut placed: Vec<_> = (0..lives.len())
            .filter_map(|slot| Some((address(slot)?, self.slots.bytes[slot], lives[slot]?)))
            .collect();
        placed.sort_unstable();
        let mut alive = vec![0; self.drafts.len()];
        let mut ends = vec![(0, 0); self.drafts.len()];
        for ((block, offset), bytes, (first, last)) in placed {
            let end = offset + bytes;
            for at in first..=last {
                let (known, reached) = ends[at];
                let from = if known == block { offset.max(reached) } else { offset };
                alive[at] += end.saturating_sub(from);
                ends[at] = (block, if known == block { end.max(reached) } else { end });
            }
        }
        alive
    }

    fn arguments(graph: &Graph) -> u64 {
        graph.params.iter().map(|&p| graph.ty(p).device_bytes()).sum()
    }

    /// Of the planned peak what is no argument's.
    fn beside(&self, graph: &Graph) -> u64 {
        self.plan.peak_bytes.saturating_sub(Self::arguments(graph))
    }

    fn totals(&self, graph: &Graph) -> String {
        let arguments = Self::arguments(graph);
        let host = match self.plan.host_temp_bytes {
            0 => String::new(),
            bytes => format!("; on the host {}", text::size(bytes)),
        };
        format!(
            "arguments {}, fresh results {}, temporaries {}, peak {}{host}\n",
            text::size(arguments),
            text::size(self.plan.fresh_device_bytes()),
            text::size(self.plan.temp_bytes),
            text::size(self.plan.peak_bytes)
        )
    }

    /// When each slot is in use, by kernel.
    fn lives(&self) -> Vec<text::Life> {
        let mut lives: Vec<text::Life> = vec![None; self.slots.nodes.len()];
        for (at, draft) in self.drafts.iter().enumerate() {
            for &slot in draft.reads.iter().chain(&draft.writes) {
                let life = lives[slot as usize].get_or_insert((at, at));
                life.1 = at;
            }
        }
        lives
    }
}

fn label(graph: &Graph, id: NodeId) -> String {
    match graph.node(id).kind {
        Kind::Param(index) => arg_name(&graph.arg_names, index as usize),
        Kind::Scratch => format!("scratch of {}", graph.node(id).op),
        Kind::Transfer(transfer) => {
            let source = graph.base(graph.node(id).inputs[transfer.source()]);
            let done = if graph.ty(id).is_host() { "offloaded" } else { "copied back" };
            match graph.node(source).kind {
                Kind::Transfer(from) => {
                    let made = graph.base(graph.node(source).inputs[from.source()]);
                    format!("{} {done}", graph.node(made).op)
                }
                _ => format!("{} {done}", graph.node(source).op),
            }
        }
        _ => graph.node(id).op.to_string(),
    }
}

/// The buffers of a program: one a parameter, then one a stored value.
struct Slots {
    of_node: Vec<u32>,
    nodes: Vec<NodeId>,
    /// Bytes on the device: 0 for what lies in host memory.
    bytes: Vec<u64>,
    /// Bytes on the host, where a slot lies there.
    host: Vec<Option<u64>>,
}

impl Slots {
    fn assign(graph: &Graph, stored: &[bool]) -> Slots {
        let mut slots = Slots {
            of_node: vec![u32::MAX; graph.nodes.len()],
            nodes: Vec::new(),
            bytes: Vec::new(),
            host: Vec::new(),
        };
        let stored = (0..graph.nodes.len() as u32)
            .map(NodeId)
            .filter(|id| stored[id.index()] && !matches!(graph.node(*id).kind, Kind::Param(_)));
        for id in graph.params.iter().copied().chain(stored) {
            slots.of_node[id.index()] = slots.nodes.len() as u32;
            slots.nodes.push(id);
            let ty = graph.ty(id);
            slots.bytes.push(ty.device_bytes());
            slots.host.push(ty.is_host().then(|| ty.bytes()));
        }
        slots
    }
}
