//! Simplification: constants folded, exact algebra, views composed, equal values computed once.
//!
//! A copy to or from the host stays a copy: none is left out, and no two are made one. Values behind a
//! barrier are never made equal to those before it, so what a checkpoint computes
//! again stays computed again. Dead values need no pass: fusion only visits what a result asks for.

use crate::algebra::{self, Known};
use crate::form::{Axes, Form, broadcast_strides, locate};
use crate::graph::{Graph, Kind, Node, NodeId};
use crate::mask;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use vramlab_ir::{Inst, Literal, ReduceKind, Reg, ScalarProgram, Type};

/// The graph with every node in its simplest form.
pub(crate) fn simplify(graph: Graph) -> Graph {
    if graph.nodes.len() <= graph.params.len() + 1 {
        return graph;
    }
    let mut simplifier = Simplifier {
        graph: Graph { nodes: Vec::with_capacity(graph.nodes.len()), ..Graph::default() },
        known: HashMap::with_capacity(graph.nodes.len()),
    };
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.nodes.len());
    for mut node in graph.nodes {
        node.inputs.iter_mut().for_each(|input| *input = map[input.index()]);
        map.push(simplifier.node(node));
    }
    let mut simplified = simplifier.graph;
    (simplified.regions, simplified.images) = (graph.regions, graph.images);
    simplified.arg_names = graph.arg_names;
    simplified.params = graph.params.iter().map(|p| map[p.index()]).collect();
    simplified.results = graph.results.iter().map(|r| map[r.index()]).collect();
    mask::from_results(simplified)
}

struct Simplifier {
    graph: Graph,
    /// Nodes by the hash of what they compute.
    known: HashMap<u64, Vec<NodeId>>,
}

impl Simplifier {
    fn node(&mut self, node: Node) -> NodeId {
        match &node.kind {
            Kind::Map(program) => match self.map(program, &node) {
                Mapped::Same => self.intern(node),
                Mapped::Program(program, inputs) => {
                    self.intern(Node { kind: Kind::Map(program), inputs, ..node })
                }
                Mapped::Operand(operand) => self.broadcast(operand, node),
            },
            Kind::View { offset, strides } => {
                let (offset, strides) = (*offset, strides.clone());
                self.view(offset, strides, node)
            }
            Kind::Reshape => self.reshape(node),
            Kind::Reduce { kind, outer, reduced, inner: 1 } => {
                let (kind, outer, reduced) = (*kind, *outer, *reduced);
                self.reduce(kind, outer, reduced, node)
            }
            Kind::Param(_) | Kind::Barrier | Kind::Transfer(_) | Kind::Region(_) => self.push(node),
            _ => self.intern(node),
        }
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.graph.stage = node.stage;
        self.graph.push(node.kind, node.inputs, node.ty, node.op)
    }

    /// The node that computes this already, or a new one.
    fn intern(&mut self, node: Node) -> NodeId {
        let mut hasher = DefaultHasher::new();
        (&node.kind, &node.inputs, &node.ty).hash(&mut hasher);
        let key = hasher.finish();
        let graph = &self.graph;
        let equal = |id: &&NodeId| {
            let other = graph.node(**id);
            other.kind == node.kind && other.inputs == node.inputs && other.ty == node.ty
        };
        if let Some(&id) = self.known.get(&key).and_then(|ids| ids.iter().find(equal)) {
            return id;
        }
        let id = self.push(node);
        self.known.entry(key).or_default().push(id);
        id
    }

    fn map(&self, program: &ScalarProgram, node: &Node) -> Mapped {
        let simpler = Folded::of(program, &|input| self.graph.literal(node.inputs[input as usize]));
        let Some(mut folded) = simpler else { return Mapped::Same };
        if let Inst::Input { input, .. } = folded.insts[folded.result as usize] {
            return Mapped::Operand(node.inputs[input as usize]);
        }
        let mut kept: Vec<u32> = Vec::new();
        for inst in &mut folded.insts {
            if let Inst::Input { input, .. } | Inst::Gather { input, .. } = inst {
                let at = kept.iter().position(|k| k == input).unwrap_or_else(|| {
                    kept.push(*input);
                    kept.len() - 1
                });
                *input = at as u32;
            }
        }
        let inputs = kept.iter().map(|&k| node.inputs[k as usize]).collect();
        Mapped::Program(folded, inputs)
    }

    /// An operand that a map turned out to be, in the map's shape.
    fn broadcast(&mut self, operand: NodeId, node: Node) -> NodeId {
        let shape = self.graph.ty(operand).shape.clone();
        if shape == node.ty.shape {
            return operand;
        }
        let strides = broadcast_strides(&shape, &node.ty.shape);
        let node = Node { kind: Kind::Reshape, inputs: vec![operand], ..node };
        self.view(0, strides, node)
    }

    /// A view of input 0 at the given offset and strides; `node` gives type and name.
    fn view(&mut self, offset: isize, strides: Vec<isize>, node: Node) -> NodeId {
        let input = node.inputs[0];
        if let Some(value) = self.graph.literal(input) {
            return self.fill(value, node);
        }
        let inner = self.graph.node(input);
        let (kind, inputs) = match &inner.kind {
            Kind::View { offset: base, strides: inner_strides } => {
                let form = Form { offset, strides: strides.clone(), starts: Vec::new() };
                match locate(&form, &node.ty.shape, &inner.ty.shape) {
                    Ok(location) => {
                        let form = location.apply(*base, inner_strides);
                        let kind = Kind::View { offset: form.offset, strides: form.strides };
                        (kind, inner.inputs.clone())
                    }
                    Err(_) => (Kind::View { offset, strides }, node.inputs),
                }
            }
            _ => (Kind::View { offset, strides }, node.inputs),
        };
        let Kind::View { offset, strides } = kind else { unreachable!("just made") };
        if self.in_order(offset, &strides, &node.ty.shape, inputs[0]) {
            return self.reshape(Node { kind: Kind::Reshape, inputs, ..node });
        }
        self.intern(Node { kind: Kind::View { offset, strides }, inputs, ..node })
    }

    fn in_order(&self, offset: isize, strides: &[isize], dims: &[usize], input: NodeId) -> bool {
        let form = Form { offset, strides: strides.to_vec(), starts: Vec::new() };
        dims.iter().product::<usize>() == self.graph.elements(input) && form.is_dense(dims)
    }

    fn reshape(&mut self, node: Node) -> NodeId {
        if let Some(value) = self.graph.literal(node.inputs[0]) {
            return self.fill(value, node);
        }
        let base = self.graph.base(node.inputs[0]);
        if self.graph.ty(base).shape == node.ty.shape {
            return base;
        }
        self.intern(Node { inputs: vec![base], ..node })
    }

    /// A reduction over several axes at once whose operand broadcasts along one of them falls into
    /// two, so that both loops follow the operand's axes and it need not be stored.
    fn reduce(&mut self, kind: ReduceKind, outer: usize, reduced: usize, node: Node) -> NodeId {
        let positions = matches!(kind, ReduceKind::ArgMax | ReduceKind::ArgMin);
        let Some(inner) = self.boundary(node.inputs[0], reduced).filter(|_| !positions) else {
            return self.intern(node);
        };
        let part = reduced / inner;
        let (first, second) = match inner >= SHORT {
            true => (
                Kind::Reduce { kind, outer: outer * part, reduced: inner, inner: 1 },
                Kind::Reduce { kind, outer, reduced: part, inner: 1 },
            ),
            false => (
                Kind::Reduce { kind, outer, reduced: part, inner },
                Kind::Reduce { kind, outer, reduced: inner, inner: 1 },
            ),
        };
        let left = outer * if inner >= SHORT { part } else { inner };
        let ty = Type::new(node.ty.dtype, [left]);
        let inputs = node.inputs.clone();
        let first = self.intern(Node { kind: first, inputs, ty, ..node.clone() });
        self.intern(Node { kind: second, inputs: vec![first], ..node })
    }

    /// The extent of the innermost axes that maps below `id` walk as one, when it is a proper part
    /// of `reduced`.
    fn boundary(&self, id: NodeId, reduced: usize) -> Option<usize> {
        let total = self.graph.elements(id);
        let mut best = None;
        let mut pending = vec![id];
        for _ in 0..LOOKED_AT {
            let Some(id) = pending.pop() else { break };
            let node = self.graph.node(id);
            let strides: Vec<Vec<isize>> = match &node.kind {
                Kind::Map(_) => {
                    let shape = |&i: &NodeId| &self.graph.ty(i).shape;
                    let whole = |i: &&NodeId| self.graph.elements(**i) == total;
                    pending.extend(node.inputs.iter().filter(whole));
                    // A gathered operand has a shape of its own.
                    let differ = node.inputs.iter().map(shape).filter(|s| {
                        **s != node.ty.shape
                            && s.broadcast(&node.ty.shape).as_ref() == Some(&node.ty.shape)
                    });
                    differ.map(|s| broadcast_strides(s, &node.ty.shape)).collect()
                }
                Kind::View { strides, .. } => vec![strides.clone()],
                Kind::Reshape | Kind::Barrier => {
                    pending.push(node.inputs[0]);
                    continue;
                }
                _ => continue,
            };
            if strides.is_empty() {
                continue;
            }
            let axes = Axes::joined(&node.ty.shape, &strides);
            let inner = axes.extents.last().copied().unwrap_or(1);
            if inner > 1 && inner < reduced && reduced.is_multiple_of(inner) {
                best = Some(best.map_or(inner, |b: usize| b.min(inner)));
            }
        }
        best
    }

    fn fill(&mut self, value: Literal, node: Node) -> NodeId {
        let kind = Kind::Map(ScalarProgram::constant(value));
        self.intern(Node { kind, inputs: Vec::new(), ..node })
    }
}

/// Rows shorter than this are reduced side by side instead.
const SHORT: usize = 16;
/// How many maps below a reduction are looked at.
const LOOKED_AT: usize = 32;

enum Mapped {
    Same,
    /// Another program over some of the inputs.
    Program(ScalarProgram, Vec<NodeId>),
    /// It is this operand.
    Operand(NodeId),
}

/// A scalar program with literal inputs put in and folded.
struct Folded {
    insts: Vec<Inst>,
}

impl Folded {
    /// `None` when nothing is simpler.
    fn of(
        program: &ScalarProgram,
        literal: &dyn Fn(u32) -> Option<Literal>,
    ) -> Option<ScalarProgram> {
        let mut folded = Folded { insts: Vec::with_capacity(program.insts.len()) };
        let mut map: Vec<Reg> = Vec::with_capacity(program.insts.len());
        let mut changed = false;
        for inst in &program.insts {
            let mut inst = inst.clone();
            match &mut inst {
                Inst::Input { input, .. } => {
                    if let Some(value) = literal(*input) {
                        inst = Inst::Const(value);
                        changed = true;
                    }
                }
                Inst::Op { args, .. } => args.iter_mut().for_each(|a| *a = map[a.0 as usize]),
                Inst::Convert { arg, .. } => *arg = map[arg.0 as usize],
                Inst::Gather { index, .. } => *index = map[index.0 as usize],
                _ => {}
            }
            let before = folded.insts.len();
            let same = inst.clone();
            let reg = folded.push(inst);
            changed |= folded.insts.len() == before || folded.insts[before] != same;
            map.push(reg);
        }
        changed.then(|| folded.finish(map[program.result as usize]))
    }

    fn push(&mut self, inst: Inst) -> Reg {
        let insts = &self.insts;
        let known = |reg: Reg| match &insts[reg.0 as usize] {
            Inst::Const(value) => Known::Literal(*value),
            inst => Known::Inst(inst),
        };
        let inst = match algebra::simplify(inst, &known) {
            Ok(reg) => return reg,
            Err(inst) => inst,
        };
        match self.insts.iter().position(|i| *i == inst) {
            Some(at) => Reg(at as u32),
            None => {
                self.insts.push(inst);
                Reg(self.insts.len() as u32 - 1)
            }
        }
    }

    /// Only what the result needs.
    fn finish(self, result: Reg) -> ScalarProgram {
        let mut used = vec![false; self.insts.len()];
        used[result.0 as usize] = true;
        for at in (0..self.insts.len()).rev() {
            if used[at] {
                match &self.insts[at] {
                    Inst::Op { args, .. } => args.iter().for_each(|a| used[a.0 as usize] = true),
                    Inst::Convert { arg, .. } => used[arg.0 as usize] = true,
                    Inst::Gather { index, .. } => used[index.0 as usize] = true,
                    _ => {}
                }
            }
        }
        let mut renumbered = vec![Reg(0); self.insts.len()];
        let mut program = ScalarProgram::default();
        for (at, mut inst) in self.insts.into_iter().enumerate() {
            if !used[at] {
                continue;
            }
            match &mut inst {
                Inst::Op { args, .. } => {
                    args.iter_mut().for_each(|a| *a = renumbered[a.0 as usize]);
                }
                Inst::Convert { arg, .. } => *arg = renumbered[arg.0 as usize],
                Inst::Gather { index, .. } => *index = renumbered[index.0 as usize],
                _ => {}
            }
            renumbered[at] = program.push(inst);
        }
        program.result = renumbered[result.0 as usize].0;
        program
    }
}
