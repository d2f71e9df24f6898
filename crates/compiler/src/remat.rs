//! Fitting a program under a limit: values that lie idle over its peak are dropped and computed
//! again behind it, as few and as cheap as will do.
//!
//! The peak of a gradient is where its forward ends, and what is idle there waits for the backward.
//! Each dropped value is computed again once, from values that are kept and from others that are
//! computed again; runs of dropped values that need each other stay as short as the limit allows,
//! since a run is there as a whole when its end is needed. A barrier holds each repetition back until
//! shortly before its first use, and keeps it apart from the first computation.

use crate::graph::{Graph, Kind, Node, NodeId};
use crate::{Lowered, Options, prepare, text};
use std::collections::{BTreeSet, HashMap};
use vramlab_ir::kernel::Place;
use vramlab_ir::{Fault, FaultKind, Stage};

/// How often the choice is widened before the least peak that was found is all there is.
const ROUNDS: usize = 48;

/// What is tried when that misses the limit: peaks between it and the limit, in parts of the way, and runs of
/// so many values that are computed again together.
const TARGETS: [u64; 3] = [3, 2, 1];
const RUNS: [usize; 7] = [2, 3, 4, 5, 6, 8, 12];

/// Why a program does not fit its limit.
pub(crate) struct Refused {
    pub fault: Fault,
    /// The least peak that was reached.
    pub peak: u64,
    /// Whether the limit has room for the arguments and results.
    pub reachable: bool,
    /// Peak and FLOPs without a limit.
    before: u64,
    flops: u64,
}

/// `graph` under `limit` bytes at its peak, arguments and results included.
///
/// # Errors
/// A fault that names the least peak that repetition reaches, and what is held there.
pub(crate) fn fit(
    name: &str,
    graph: &Graph,
    donate: &[bool],
    options: &Options,
    limit: u64,
) -> Result<(Graph, Lowered), Box<Refused>> {
    let (prepared, first) = lower(graph, donate, options);
    if first.plan.peak_bytes <= limit {
        return Ok((prepared, first));
    }
    let outside = outside(graph, &first);
    let (before, flops) = (first.plan.peak_bytes, first.flops());
    if outside > limit {
        let fault = too_small(name, &first, limit, outside);
        return Err(Box::new(Refused { fault, peak: before, reachable: false, before, flops }));
    }
    // A loop is one kernel here; what happens inside it is a checkpoint's business.
    let plain = graph.regions.is_empty();
    let turns = if plain { turns(graph, &first) } else { Vec::new() };
    let views: Vec<View> =
        turns.into_iter().filter_map(|turn| View::new(graph, &first, turn)).collect();
    let mut search = Search { donate, options, limit, before, flops, least: (prepared, first) };
    if views.iter().any(|view| search.quickly(view)) || views.iter().any(|view| search.long(view)) {
        return Ok(search.least);
    }
    let (graph, lowered) = &search.least;
    let fault = out_of_reach(name, graph, lowered, limit, plain);
    let peak = lowered.plan.peak_bytes;
    Err(Box::new(Refused { fault, peak, reachable: true, before, flops }))
}

fn lower(graph: &Graph, donate: &[bool], options: &Options) -> (Graph, Lowered) {
    let mut graph = graph.clone();
    prepare::prepare(&mut graph, donate, options);
    let lowered = Lowered::best(&graph, donate, options);
    (graph, lowered)
}

/// What was tried so far.
struct Search<'a> {
    donate: &'a [bool],
    options: &'a Options,
    limit: u64,
    /// Peak and FLOPs without a limit.
    before: u64,
    flops: u64,
    /// The program with the least peak.
    least: (Graph, Lowered),
}

impl Search<'_> {
    /// Bytes above the limit.
    fn missed(&self) -> u64 {
        self.least.1.plan.peak_bytes.saturating_sub(self.limit)
    }

    /// Aims at the limit; whether it is reached.
    fn quickly(&mut self, view: &View) -> bool {
        self.widen(view, self.limit);
        self.missed() == 0
    }

    /// Aims higher, since a choice that aims lower than can be reached overshoots, and tries runs of several
    /// lengths; whether the limit is reached.
    fn long(&mut self, view: &View) -> bool {
        for part in TARGETS {
            let missed = self.missed();
            if missed > 0 {
                self.widen(view, self.limit + missed * part / 4);
            }
        }
        for run in RUNS.into_iter().filter(|&run| run < view.candidates.len()) {
            if self.missed() > 0 {
                self.with(view, &view.runs(run));
            }
        }
        self.missed() == 0
    }

    /// Drops more and more values until the peak is at the target.
    fn widen(&mut self, view: &View, target: u64) {
        let (mut victims, mut above) = (BTreeSet::new(), self.before);
        for _ in 0..ROUNDS {
            if above <= target || !view.widen(&mut victims, above - target) {
                break;
            }
            above = self.with(view, &victims);
        }
    }

    /// The peak with these values computed again.
    fn with(&mut self, view: &View, victims: &BTreeSet<NodeId>) -> u64 {
        let rewritten = Rewriter::new(view, victims).graph();
        let (prepared, mut lowered) = lower(&rewritten, self.donate, self.options);
        let peak = lowered.plan.peak_bytes;
        if peak < self.least.1.plan.peak_bytes {
            if self.options.explain {
                let values = if victims.len() == 1 { "value" } else { "values" };
                let how = format!("{} {values} computed again", victims.len());
                let bytes = [self.limit, self.before, peak];
                let note = said(&how, lowered.flops(), self.flops, bytes);
                lowered.fused.notes.insert(0, note);
            }
            self.least = (prepared, lowered);
        }
        peak
    }
}

/// What a leaner function costs beside the one that was refused.
pub(crate) fn said_of(how: &str, lowered: &Lowered, refused: &Refused, limit: u64) -> String {
    let bytes = [limit, refused.before, lowered.plan.peak_bytes];
    said(how, lowered.flops(), refused.flops, bytes)
}

fn said(how: &str, now: u64, flops: u64, bytes: [u64; 3]) -> String {
    let [limit, before, after] = bytes.map(text::size);
    let again = now.saturating_sub(flops);
    let part = 100.0 * again as f64 / flops.max(1) as f64;
    format!(
        "memory_limit {limit}: {how}, {again} FLOPs more (+{part:.1} %); peak {before}, now {after}"
    )
}

/// Bytes that are not the program's to drop: arguments and fresh results.
fn outside(graph: &Graph, lowered: &Lowered) -> u64 {
    let arguments: u64 = graph.params.iter().map(|&param| graph.ty(param).bytes()).sum();
    arguments + lowered.plan.fresh_bytes.iter().sum::<u64>()
}

fn too_small(name: &str, lowered: &Lowered, limit: u64, outside: u64) -> Fault {
    let results: u64 = lowered.plan.fresh_bytes.iter().sum();
    let [asked, _] = apart([limit, outside]);
    let message = format!(
        "a limit of {asked} is below what the call itself holds: arguments {}, results {}",
        text::size(outside - results),
        text::size(results),
    );
    Fault::new(FaultKind::Argument, name, message).help(format!(
        "the limit counts arguments and results: at least {} and room for temporaries; arguments that are \
         moved in can become results",
        text::size(outside)
    ))
}

/// Two sizes in words, exact where they would read the same.
fn apart(bytes: [u64; 2]) -> [String; 2] {
    let short = bytes.map(text::size);
    if short[0] == short[1] { bytes.map(|bytes| format!("{bytes} bytes")) } else { short }
}

/// The least peak, and the largest of what is there at it.
fn out_of_reach(name: &str, graph: &Graph, lowered: &Lowered, limit: u64, plain: bool) -> Fault {
    let peak = lowered.peak_at();
    let mut held: Vec<(u64, String)> = lowered
        .lives()
        .iter()
        .enumerate()
        .filter_map(|(slot, life)| {
            let (first, last) = (*life)?;
            let id = lowered.slots.nodes[slot];
            let there = (first..=last).contains(&peak)
                && matches!(lowered.plan.places[slot], Place::Temporary { .. });
            there.then(|| {
                let words = format!("{} {}", graph.node(id).op, graph.ty(id));
                (lowered.slots.bytes[slot], words)
            })
        })
        .collect();
    held.sort_by(|a, b| b.cmp(a));
    let more = held.len().saturating_sub(4);
    let mut held: Vec<String> = held
        .iter()
        .take(4)
        .map(|(bytes, what)| format!("{what} ({})", text::size(*bytes)))
        .collect();
    if more > 0 {
        held.push(format!("and {more} more"));
    }
    let [least, asked] = apart([lowered.plan.peak_bytes, limit]);
    let message = format!(
        "{least} is the least peak that was found by computing values again, and the limit is {asked}; held \
         there beside arguments and results: {}",
        held.join(", ")
    );
    let help = match plain {
        true => "raise the limit, make the batch smaller, or move arguments in",
        false => {
            "raise the limit, make the batch smaller, or move arguments in; of a loop only the whole body is \
             computed again, so checkpoints around parts of it may reach further"
        }
    };
    Fault::new(FaultKind::Argument, name, message).help(help)
}

/// The program as it was first compiled, as far as the choice needs it.
struct View<'a> {
    graph: &'a Graph,
    stored: Vec<bool>,
    /// The last node before what is computed again.
    turn: NodeId,
    /// What may be dropped, in order of the program.
    candidates: Vec<NodeId>,
    /// Per candidate: stored values that it is computed from.
    needs: HashMap<NodeId, Vec<NodeId>>,
}

/// Where the program may be cut: what is computed up to there is computed again behind it. At its peak, and
/// where a gradient begins, since another order may hold less behind that.
fn turns(graph: &Graph, lowered: &Lowered) -> Vec<NodeId> {
    let up_to = lowered.drafts.get(..=lowered.peak_at()).unwrap_or_default();
    let peak = up_to.iter().flat_map(|draft| draft.nodes.iter().copied()).max();
    let gradient = graph.nodes.iter().position(|node| node.stage != Stage::Forward);
    let before = gradient.and_then(|at| at.checked_sub(1)).map(|at| NodeId(at as u32));
    let mut turns: Vec<NodeId> = peak.into_iter().chain(before).collect();
    turns.dedup();
    turns
}

impl<'a> View<'a> {
    /// `None` where nothing is idle over the turn.
    fn new(graph: &'a Graph, lowered: &Lowered, turn: NodeId) -> Option<View<'a>> {
        let stored = lowered.fused.stored.clone();
        let mut view = View { graph, stored, turn, candidates: Vec::new(), needs: HashMap::new() };
        let mut late = vec![false; graph.nodes.len()];
        for (at, node) in graph.nodes.iter().enumerate().skip(turn.index() + 1) {
            if let Kind::Param(_) = node.kind {
                continue;
            }
            view.leaves(NodeId(at as u32)).into_iter().for_each(|leaf| late[leaf.index()] = true);
        }
        let results: Vec<NodeId> = graph.results.iter().map(|&r| graph.base(r)).collect();
        for id in (0..=turn.0).map(NodeId) {
            let kind = &graph.node(id).kind;
            // What is fetched from the host is no computation that could be done again.
            let given = matches!(kind, Kind::Param(_) | Kind::Empty | Kind::Transfer(_));
            let own = !given && view.stored[id.index()];
            if own && late[id.index()] && !results.contains(&id) {
                view.needs.insert(id, view.leaves(id));
                view.candidates.push(id);
            }
        }
        (!view.candidates.is_empty()).then_some(view)
    }

    fn is_leaf(&self, id: NodeId) -> bool {
        self.stored[id.index()] || matches!(self.graph.node(id).kind, Kind::Param(_))
    }

    /// The stored values and parameters that a node is computed from.
    fn leaves(&self, id: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut pending = self.graph.node(id).inputs.clone();
        let mut seen = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.is_leaf(id) {
                true => found.push(id),
                false => pending.extend(&self.graph.node(id).inputs),
            }
        }
        found.sort_unstable();
        found
    }

    /// How much work a value is: 0 for arithmetic by the element, 1 for what sums or multiplies.
    fn weight(&self, id: NodeId) -> u32 {
        let mut pending = vec![id];
        while let Some(at) = pending.pop() {
            let node = self.graph.node(at);
            if matches!(node.kind, Kind::Dot { .. } | Kind::Conv(_) | Kind::Reduce { .. }) {
                return 1;
            }
            pending.extend(node.inputs.iter().filter(|input| !self.is_leaf(**input)));
        }
        0
    }

    /// Adds values to `victims` whose bytes make up for `bytes`; whether there was one left.
    fn widen(&self, victims: &mut BTreeSet<NodeId>, bytes: u64) -> bool {
        let mut gained = 0;
        let before = victims.len();
        let longest = self.candidates.len();
        let mut run = 1;
        while run <= longest && gained < bytes.max(1) {
            for weight in 0..2 {
                for &id in &self.candidates {
                    if gained >= bytes.max(1) {
                        return true;
                    }
                    let fits = !victims.contains(&id) && self.weight(id) == weight;
                    if fits && self.run_with(victims, id) <= run {
                        victims.insert(id);
                        gained += self.graph.ty(id).bytes();
                    }
                }
            }
            if victims.len() > before && run > 1 {
                return true;
            }
            run *= 2;
        }
        victims.len() > before
    }

    /// Every value but each `run`-th, so that what is computed again together is that long.
    fn runs(&self, run: usize) -> BTreeSet<NodeId> {
        let dropped = self.candidates.iter().enumerate().filter(|(at, _)| (at + 1) % run != 0);
        dropped.map(|(_, &id)| id).collect()
    }

    /// How many victims would need each other around `id`.
    fn run_with(&self, victims: &BTreeSet<NodeId>, id: NodeId) -> usize {
        let mut members = BTreeSet::from([id]);
        let mut pending = vec![id];
        while let Some(at) = pending.pop() {
            let below = self.needs.get(&at).into_iter().flatten().copied();
            let above = victims.iter().copied().filter(|v| self.needs[v].contains(&at));
            for next in below.chain(above) {
                if victims.contains(&next) && members.insert(next) {
                    pending.push(next);
                }
            }
        }
        members.len()
    }
}

/// Writes the program again with the victims computed twice.
struct Rewriter<'a> {
    view: &'a View<'a>,
    victims: &'a BTreeSet<NodeId>,
    out: Graph,
    /// What stands for each node; for nodes up to the turn, their first computation.
    map: Vec<NodeId>,
    /// What stands for a node behind the turn, where that is another one.
    again: HashMap<NodeId, NodeId>,
    /// The last stored value behind the turn that is written already.
    last: Option<NodeId>,
}

impl<'a> Rewriter<'a> {
    fn new(view: &'a View<'a>, victims: &'a BTreeSet<NodeId>) -> Rewriter<'a> {
        Rewriter {
            view,
            victims,
            out: Graph::default(),
            map: Vec::with_capacity(view.graph.nodes.len()),
            again: HashMap::new(),
            last: None,
        }
    }

    fn graph(mut self) -> Graph {
        let graph = self.view.graph;
        for (at, node) in graph.nodes.iter().enumerate() {
            let id = NodeId(at as u32);
            let late = id > self.view.turn;
            let inputs = node
                .inputs
                .iter()
                .map(|&input| if late { self.behind(input) } else { self.map[input.index()] })
                .collect();
            let new = self.push(node, inputs);
            self.map.push(new);
            if late && self.view.stored[at] {
                self.last = Some(new);
            }
        }
        self.out.arg_names = graph.arg_names.clone();
        self.out.params = graph.params.iter().map(|p| self.map[p.index()]).collect();
        self.out.results = graph.results.iter().map(|r| self.map[r.index()]).collect();
        self.out
    }

    fn push(&mut self, node: &Node, inputs: Vec<NodeId>) -> NodeId {
        self.out.stage = node.stage;
        self.out.push(node.kind.clone(), inputs, node.ty.clone(), node.op)
    }

    /// What stands for `id` behind the turn.
    fn behind(&mut self, id: NodeId) -> NodeId {
        if id > self.view.turn || !self.repeated(id) {
            return self.map[id.index()];
        }
        self.repeat(id)
    }

    /// Whether a value is a victim, or is read through from one.
    fn repeated(&self, id: NodeId) -> bool {
        if self.victims.contains(&id) {
            return true;
        }
        !self.view.is_leaf(id)
            && self.view.leaves(id).iter().any(|leaf| self.victims.contains(leaf))
    }

    fn repeat(&mut self, id: NodeId) -> NodeId {
        if let Some(&known) = self.again.get(&id) {
            return known;
        }
        let node = self.view.graph.node(id);
        let inputs = node.inputs.iter().map(|&input| self.operand(input)).collect();
        let new = self.push(&Node { stage: Stage::Recompute, ..node.clone() }, inputs);
        self.again.insert(id, new);
        new
    }

    /// An operand of a repetition: kept values wait at a barrier, the rest is repeated with it.
    fn operand(&mut self, id: NodeId) -> NodeId {
        let view = self.view;
        if self.victims.contains(&id) || !view.is_leaf(id) {
            return self.repeat(id);
        }
        let kept = self.map[id.index()];
        let Some(last) = self.last else { return kept };
        let ty = view.graph.ty(id).clone();
        self.out.push(Kind::Barrier, vec![kept, last], ty, view.graph.node(id).op)
    }
}
