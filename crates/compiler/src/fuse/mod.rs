//! Fusion: which values are stored, and which loop computes what.
//!
//! Nodes are visited from the last to the first. Every use of a value is a [`Request`] of some
//! group of loops for the value at a [`Form`]; when a node is visited all its uses are known. Either
//! it joins the one group that asks for it (its own operands are then asked for in its place), or it
//! is stored and gets a group of its own. A node only ever joins when all its users are in that
//! group, so no cycle can arise; cheap nodes may be computed again in several groups.

mod contract;
mod group;
mod join;
mod own;
mod siblings;

pub(crate) use group::{Group, GroupKind, Item, Request, Root, Source};

use crate::Options;
use crate::form::{Form, StartSource};
use crate::graph::{Graph, Kind, NodeId};
use vramlab_ir::{Inst, ScalarOp, ScalarProgram};

/// How far fusion goes. A program is compiled at the first level; when that needs temporaries and a
/// lower level has a lower peak, the lower level wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Full,
    /// No loop reads more than two temporaries at once.
    Frugal,
    /// Only constants, views and reshapes are read through.
    Off,
}

impl Level {
    /// Why a level below the first was taken.
    pub fn chosen(self) -> &'static str {
        match self {
            Level::Full => "every loop fused",
            Level::Frugal => {
                "fused less: with every loop fused, values that one loop reads would live together"
            }
            Level::Off => "not fused: fused loops would keep more values alive together",
        }
    }
}

/// Arithmetic that may be repeated rather than stored, in units of an addition.
pub(crate) const CHEAP: u32 = 4;

/// The groups, and which nodes are stored.
#[derive(Debug)]
pub(crate) struct Fused {
    pub groups: Vec<Group>,
    pub stored: Vec<bool>,
    /// Bytes of intermediates that no kernel stores.
    pub fused_bytes: u64,
    pub notes: Vec<String>,
}

pub(crate) struct Fuser<'a> {
    graph: &'a Graph,
    level: Level,
    options: &'a Options,
    groups: Vec<Group>,
    /// Per node: (group, request) of every use met so far.
    pending: Vec<Vec<(u32, u32)>>,
    /// Nodes that must be stored whoever uses them.
    forced: Vec<bool>,
    /// Nodes that other loops need stored before they begin: they get a loop of their own.
    apart: Vec<bool>,
    stored: Vec<bool>,
    joined: Vec<bool>,
    facts: Vec<Facts>,
    notes: Vec<String>,
}

/// What is known of a node before fusion, from its operands.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// Arithmetic to compute one element from arrays that are stored anyway.
    weight: u32,
    /// Bytes of those arrays.
    leaf_bytes: u64,
    /// The reduced extent of a row reduction that this node is a per-row function of; 0: none.
    row_extent: usize,
}

pub(crate) fn fuse(graph: &Graph, level: Level, options: &Options) -> Fused {
    let count = graph.nodes.len();
    let mut fuser = Fuser {
        graph,
        level,
        options,
        groups: Vec::new(),
        pending: vec![Vec::new(); count],
        forced: vec![false; count],
        apart: vec![false; count],
        stored: vec![false; count],
        joined: vec![false; count],
        facts: Vec::with_capacity(count),
        notes: Vec::new(),
    };
    for id in 0..count as u32 {
        let facts = fuser.learn(NodeId(id));
        fuser.facts.push(facts);
    }
    for &result in &graph.results {
        fuser.forced[graph.base(result).index()] = true;
    }
    for id in (0..count as u32).rev() {
        fuser.visit(NodeId(id));
    }
    if level == Level::Full {
        fuser.join_siblings();
    }
    let fused_bytes = (0..count)
        .filter(|&i| fuser.joined[i] && !fuser.stored[i])
        .map(|i| graph.nodes[i].ty.bytes())
        .sum();
    Fused { groups: fuser.groups, stored: fuser.stored, fused_bytes, notes: fuser.notes }
}

impl Fuser<'_> {
    fn learn(&self, id: NodeId) -> Facts {
        let node = self.graph.node(id);
        let bytes = node.ty.bytes();
        match &node.kind {
            Kind::Map(program) => {
                let mut facts = Facts { weight: weight(program), ..Facts::default() };
                for (at, input) in node.inputs.iter().enumerate() {
                    if node.inputs[..at].contains(input) {
                        continue;
                    }
                    let operand = self.facts[input.index()];
                    // A costly broadcast is stored, so it is no work of each element.
                    let repeated = self.graph.elements(*input) < self.graph.elements(id);
                    if !repeated || operand.weight <= CHEAP / 2 {
                        facts.weight = facts.weight.saturating_add(operand.weight);
                    }
                    facts.leaf_bytes = facts.leaf_bytes.saturating_add(operand.leaf_bytes);
                    if self.graph.elements(*input) == self.graph.elements(id) {
                        facts.row_extent = facts.row_extent.max(operand.row_extent);
                    }
                }
                facts
            }
            Kind::View { .. } | Kind::DynamicSlice | Kind::Reshape | Kind::Barrier => {
                let operand = self.facts[node.inputs[0].index()];
                let keeps = self.graph.elements(node.inputs[0]) == self.graph.elements(id);
                Facts { row_extent: if keeps { operand.row_extent } else { 0 }, ..operand }
            }
            Kind::Reduce { reduced, inner: 1, .. } => {
                Facts { weight: 0, leaf_bytes: bytes, row_extent: *reduced }
            }
            _ => Facts { weight: 0, leaf_bytes: bytes, row_extent: 0 },
        }
    }

    fn visit(&mut self, id: NodeId) {
        let uses = std::mem::take(&mut self.pending[id.index()]);
        let forced = self.forced[id.index()];
        let apart = self.apart[id.index()];
        if let Kind::Region(region) = self.graph.node(id).kind {
            return self.own_region(id, region);
        }
        if uses.is_empty() && !forced && !apart {
            return;
        }
        if apart && !matches!(self.graph.node(id).kind, Kind::Reshape) {
            return self.store(id);
        }
        match &self.graph.node(id).kind {
            Kind::Param(_) | Kind::Empty | Kind::Output(_) | Kind::Scratch => {
                self.stored[id.index()] = true;
            }
            Kind::Reshape => self.forward(id, uses),
            Kind::Barrier => self.barrier(id, uses, forced),
            Kind::View { .. } | Kind::DynamicSlice => self.view(id, uses, forced),
            Kind::Map(_) => self.map(id, uses, forced),
            Kind::Reduce { .. } | Kind::Dot { .. } => self.contraction(id, uses, forced),
            Kind::Concatenate { .. }
            | Kind::Pad { .. }
            | Kind::Update
            | Kind::Conv(_)
            | Kind::Cumulative { .. }
            | Kind::Scatter { .. }
            | Kind::Transfer(_) => self.store(id),
            Kind::Region(_) => unreachable!("taken above"),
        }
    }

    /// Hands every use on to input 0 at the same flat positions.
    pub(super) fn forward(&mut self, id: NodeId, uses: Vec<(u32, u32)>) {
        let input = self.graph.node(id).inputs[0];
        for &(group, request) in &uses {
            self.groups[group as usize].requests[request as usize].node = input;
        }
        self.pending[input.index()].extend(uses);
    }

    fn barrier(&mut self, id: NodeId, uses: Vec<(u32, u32)>, forced: bool) {
        if forced {
            return self.store(id);
        }
        self.order_after(&self.graph.node(id).inputs[1..], &uses);
        self.forward(id, uses);
    }

    /// What a barrier names beside its value is computed before every user of the barrier.
    pub(super) fn order_after(&mut self, nodes: &[NodeId], uses: &[(u32, u32)]) {
        for &before in nodes {
            let base = self.graph.base(before);
            self.apart[base.index()] = true;
            for &(group, _) in uses {
                self.groups[group as usize].after_nodes.push(base);
            }
        }
    }

    fn view(&mut self, id: NodeId, uses: Vec<(u32, u32)>, forced: bool) {
        if forced {
            return self.store(id);
        }
        let mut refused = false;
        for (group, request) in uses {
            refused |= self.join(id, group, &[request], false).is_err();
        }
        if refused {
            self.note(id, "its elements are met in an order that no strides express: stored");
            self.store(id);
        }
    }

    fn map(&mut self, id: NodeId, uses: Vec<(u32, u32)>, forced: bool) {
        let groups = by_group(&uses);
        let is_literal = self.graph.literal(id).is_some();
        if groups.is_empty() || (self.level == Level::Off && !is_literal) {
            return self.store(id);
        }
        if let [(group, requests)] = groups.as_slice() {
            match self.join(id, *group, requests, forced) {
                Ok(()) => self.stored[id.index()] |= forced,
                Err(reason) => {
                    self.note(id, reason);
                    self.store(id);
                }
            }
            return;
        }
        let facts = self.facts[id.index()];
        let bytes = self.graph.node(id).ty.bytes();
        let again = facts.weight <= CHEAP && facts.leaf_bytes <= bytes + bytes / 8 && !forced;
        if !again && !is_literal {
            self.note(id, "several loops use it: stored once rather than computed again");
            return self.store(id);
        }
        let mut refused = forced;
        for (group, requests) in &groups {
            refused |= self.join(id, *group, requests, false).is_err();
        }
        if refused {
            self.store(id);
        }
    }

    fn contraction(&mut self, id: NodeId, uses: Vec<(u32, u32)>, forced: bool) {
        let groups = by_group(&uses);
        match groups.as_slice() {
            [(group, requests)] if self.level != Level::Off => {
                match self.join(id, *group, requests, forced) {
                    Ok(()) => self.stored[id.index()] |= forced,
                    Err(reason) => {
                        self.note(id, reason);
                        self.store(id);
                    }
                }
            }
            groups => {
                if groups.len() > 1 {
                    self.note(id, "several loops use it: stored");
                }
                self.store(id);
            }
        }
    }

    fn note(&mut self, id: NodeId, reason: impl Into<String>) {
        if self.options.explain && self.notes.len() < NOTES {
            let node = self.graph.node(id);
            self.notes.push(format!("{} {} {}: {}", id, node.op, node.ty, reason.into()));
        }
    }

    fn request(&mut self, group: u32, node: NodeId, form: Form, buffer_only: bool) -> u32 {
        let requests = &mut self.groups[group as usize].requests;
        let index = requests.len() as u32;
        requests.push(Request { node, form, source: Source::Read, buffer_only });
        self.pending[node.index()].push((group, index));
        index
    }

    /// A run-time start is read from memory: its scalar is stored.
    fn force_starts(&mut self, form: &Form) {
        for start in &form.starts {
            if let StartSource::Node(node) = start.source {
                self.apart[node.index()] = true;
            }
        }
    }
}

/// Notes beyond these say nothing new.
const NOTES: usize = 200;

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// The uses by group, groups in order of first use.
fn by_group(uses: &[(u32, u32)]) -> Vec<(u32, Vec<u32>)> {
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    for &(group, request) in uses {
        match groups.iter_mut().rev().find(|(g, _)| *g == group) {
            Some((_, requests)) => requests.push(request),
            None => groups.push((group, vec![request])),
        }
    }
    groups
}

fn weight(program: &ScalarProgram) -> u32 {
    program.insts.iter().map(inst_weight).sum()
}

/// The cost of one scalar instruction, in units of an addition.
pub(crate) fn inst_weight(inst: &Inst) -> u32 {
    use ScalarOp::*;
    let Inst::Op { op, .. } = inst else {
        return matches!(inst, Inst::Gather { .. } | Inst::Convert { .. }) as u32;
    };
    match op {
        Exp | Expm1 | Log | Log1p | Sin | Cos | Tan | Tanh | Erf | Pow | Atan2 | Threefry => 16,
        Div | Rem | Sqrt | Rsqrt => 4,
        _ => 1,
    }
}
