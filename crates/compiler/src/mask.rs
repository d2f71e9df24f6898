//! Masks of a rectifier read from its result. `select(x <= c, c, x) <= c` is `x <= c` (NaN included),
//! so where the result is still there when the mask is asked for again, in a gradient, the mask is
//! computed from it: nothing has to keep it, and the rectifier can end the loop or the product that
//! makes `x`.

use crate::graph::{Graph, Kind, Node, NodeId};
use vramlab_ir::{Inst, Literal, Reg, ScalarOp, ScalarProgram};

/// The graph in which masks are computed where that costs no memory.
pub(crate) fn from_results(graph: Graph) -> Graph {
    let rectifiers: Vec<(NodeId, NodeId)> = (0..graph.nodes.len() as u32)
        .map(NodeId)
        .filter_map(|result| Some((rectified(&graph, result)?, result)))
        .collect();
    if rectifiers.is_empty() {
        return graph;
    }
    let last = last_uses(&graph);
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|input| users[input.index()].push(at as u32));
    }
    // A use of a mask whose other operands are there before the result's last use: (user, mask, result).
    let mut moved: Vec<(usize, NodeId, NodeId)> = Vec::new();
    for (mask, result) in rectifiers {
        for user in users[mask.index()].iter().map(|&user| user as usize) {
            let node = &graph.nodes[user];
            let others = node.inputs.iter().filter(|&&input| input != mask);
            let newest = others.map(|input| input.index()).max().unwrap_or(0);
            let later = newest > result.index() && last[result.index()] > newest;
            if matches!(node.kind, Kind::Map(_)) && later {
                moved.push((user, mask, result));
            }
        }
    }
    moved.sort_unstable();
    moved.dedup();
    match moved.is_empty() {
        true => graph,
        false => rewritten(graph, &moved),
    }
}

/// The mask under which `result` is a constant, where it is its own operand else.
fn rectified(graph: &Graph, result: NodeId) -> Option<NodeId> {
    let node = graph.node(result);
    let (Kind::Map(program), &[mask, x]) = (&node.kind, &node.inputs[..]) else { return None };
    let floor = floor_of(program)?;
    let compare = graph.node(mask);
    let (Kind::Map(program), &[compared]) = (&compare.kind, &compare.inputs[..]) else {
        return None;
    };
    let alike = compared == x && graph.ty(mask).shape == node.ty.shape;
    (alike && graph.ty(x).shape == node.ty.shape && compares(program, floor)).then_some(mask)
}

/// The constant `c` of `select(input 0, c, input 1)`.
fn floor_of(program: &ScalarProgram) -> Option<Literal> {
    let [.., Inst::Op { op: ScalarOp::Select, args, .. }] = &program.insts[..] else { return None };
    let inst = |reg: Reg| &program.insts[reg.0 as usize];
    match [inst(args[0]), inst(args[1]), inst(args[2])] {
        [Inst::Input { input: 0, .. }, Inst::Const(floor), Inst::Input { input: 1, .. }] => {
            (program.insts.len() == 4 && ends(program)).then_some(*floor)
        }
        _ => None,
    }
}

/// Whether it is `input 0 <= floor`.
fn compares(program: &ScalarProgram, floor: Literal) -> bool {
    let [.., Inst::Op { op: ScalarOp::Le, args, .. }] = &program.insts[..] else { return false };
    let inst = |reg: Reg| &program.insts[reg.0 as usize];
    matches!(inst(args[0]), Inst::Input { input: 0, .. })
        && *inst(args[1]) == Inst::Const(floor)
        && program.insts.len() == 3
        && ends(program)
}

fn ends(program: &ScalarProgram) -> bool {
    program.result as usize + 1 == program.insts.len()
}

/// By node, the position of its last reader, through what only names it anew.
fn last_uses(graph: &Graph) -> Vec<usize> {
    let mut last = vec![0; graph.nodes.len()];
    for &result in &graph.results {
        last[result.index()] = usize::MAX;
    }
    for (at, node) in graph.nodes.iter().enumerate().rev() {
        let until = match node.kind {
            Kind::View { .. } | Kind::Reshape => last[at].max(at),
            _ => at,
        };
        for input in &node.inputs {
            last[input.index()] = last[input.index()].max(until);
        }
    }
    last
}

fn rewritten(graph: Graph, moved: &[(usize, NodeId, NodeId)]) -> Graph {
    let Graph { nodes, params, results, regions, images, stage, arg_names } = graph;
    let mut map: Vec<NodeId> = Vec::with_capacity(nodes.len());
    let mut new: Vec<Node> = Vec::with_capacity(nodes.len() + moved.len());
    let mut moved = moved.iter().peekable();
    for (at, mut node) in nodes.into_iter().enumerate() {
        let mut inputs: Vec<NodeId> = node.inputs.iter().map(|i| map[i.index()]).collect();
        while let Some(&(_, mask, result)) = moved.next_if(|(user, ..)| *user == at) {
            let compare = &new[map[mask.index()].index()];
            let again =
                Node { inputs: vec![map[result.index()]], stage: node.stage, ..compare.clone() };
            let id = NodeId(new.len() as u32);
            new.push(again);
            for (input, old) in inputs.iter_mut().zip(&node.inputs) {
                if *old == mask {
                    *input = id;
                }
            }
        }
        node.inputs = inputs;
        map.push(NodeId(new.len() as u32));
        new.push(node);
    }
    let renamed = |ids: Vec<NodeId>| ids.into_iter().map(|id| map[id.index()]).collect();
    Graph {
        nodes: new,
        params: renamed(params),
        results: renamed(results),
        regions,
        images,
        stage,
        arg_names,
    }
}
