//! Leaving out what no result needs: unread stacks, carries that only feed themselves, operands
//! that nothing inside reads. A carry that never changes is a constant of the loop.

use super::{outputs, simplified};
use crate::graph::{Graph, Kind, NodeId};
use crate::region::{BranchRegion, Carry, LoopRegion, Region, Role, TripsRegion};

/// Prunes every region, the last one first, since its operands may be results of another; which
/// nodes are live then.
pub(super) fn prune(graph: &mut Graph) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    for &id in graph.results.iter().chain(&graph.params) {
        live[id.index()] = true;
    }
    for at in (0..graph.nodes.len()).rev() {
        if !live[at] {
            continue;
        }
        if let Kind::Region(region) = graph.nodes[at].kind {
            let id = NodeId(at as u32);
            let outputs = outputs(graph, id);
            let asked = |output: u32| {
                outputs.iter().any(|&(number, id)| number == output && live[id.index()])
            };
            let node_inputs = graph.nodes[at].inputs.clone();
            let (inputs, constants) = match &mut graph.regions[region as usize] {
                Region::Loop(looped) => prune_loop(looped, &node_inputs, &asked),
                Region::Branch(branch) => (prune_branch(branch, &node_inputs, &asked), Vec::new()),
            };
            graph.nodes[at].inputs = inputs;
            // What is carried unchanged is its first value.
            for carry in constants {
                let init = node_inputs[carry.init as usize];
                live[init.index()] = true;
                let output = outputs.iter().find(|&&(number, _)| number == carry.output);
                let &(_, output) = output.expect("a region has a node for every result");
                let node = &mut graph.nodes[output.index()];
                (node.kind, node.inputs) = (Kind::Reshape, vec![init]);
            }
        }
        for input in &graph.nodes[at].inputs {
            live[input.index()] = true;
        }
    }
    live
}

/// Prunes a loop; the node's inputs that are left, and the carries that became constants.
fn prune_loop(
    looped: &mut LoopRegion,
    inputs: &[NodeId],
    asked: &dyn Fn(u32) -> bool,
) -> (Vec<NodeId>, Vec<Carry>) {
    simplified(&mut looped.body);
    if let TripsRegion::While { condition, .. } = &mut looped.trips {
        simplified(condition);
    }
    let constants = if ends(looped) { unchanging(looped) } else { Vec::new() };
    let (carries, stacks) = needed(looped, asked);
    let (mut moved_carries, mut moved_stacks) = (Vec::new(), Vec::new());
    let mut results = Vec::new();
    keep(&carries, &mut looped.carries, &mut moved_carries);
    keep(&stacks, &mut looped.stacks, &mut moved_stacks);
    let kept = carries.iter().chain(&stacks);
    results.extend(kept.zip(&looped.body.results).filter(|(kept, _)| **kept).map(|(_, &r)| r));
    looped.body.results = results;
    let live = read(&looped.body);
    let stays = |role: Role, live: bool| match role {
        Role::Carry(carry) => moved_carries[carry as usize].map(Role::Carry),
        Role::Stack(stack) => moved_stacks[stack as usize].map(Role::Stack),
        role => live.then_some(role),
    };
    retain_params(&mut looped.body, &mut looped.roles, &live, &stays);
    if let TripsRegion::While { condition, roles } = &mut looped.trips {
        let live = read(condition);
        let stays = |role: Role, live: bool| live.then(|| stays(role, true)).flatten();
        retain_params(condition, roles, &live, &stays);
    }
    (renumber_inputs(looped, inputs), constants)
}

/// Whether the body changes something that the condition reads. A loop of which it does not runs
/// never or for ever, so what it carries may not be had without running it.
fn ends(looped: &LoopRegion) -> bool {
    let TripsRegion::While { condition, roles } = &looped.trips else { return true };
    let read = read(condition);
    roles.iter().zip(read).any(|(role, read)| match *role {
        Role::Carry(carry) => read && !stays(looped, carry as usize),
        _ => false,
    })
}

/// Whether the body hands a carry on as it came.
fn stays(looped: &LoopRegion, carry: usize) -> bool {
    let role = Role::Carry(carry as u32);
    let param = looped.roles.iter().position(|&r| r == role).map(|p| looped.body.params[p]);
    param == Some(looped.body.base(looped.body.results[carry]))
}

/// Makes each carry that the body hands on as it came a constant of the loop.
fn unchanging(looped: &mut LoopRegion) -> Vec<Carry> {
    let mut constants = Vec::new();
    let mut changes = Vec::new();
    for (at, carry) in looped.carries.iter().enumerate() {
        let same = stays(looped, at);
        changes.push(!same);
        if same {
            constants.push(*carry);
        }
    }
    if constants.is_empty() {
        return constants;
    }
    let mut moved = Vec::new();
    let inits: Vec<u32> = looped.carries.iter().map(|carry| carry.init).collect();
    keep(&changes, &mut looped.carries, &mut moved);
    let mut at = 0..;
    looped
        .body
        .results
        .retain(|_| changes.get(at.next().expect("endless")).copied().unwrap_or(true));
    let constant = |role: &mut Role| {
        if let Role::Carry(carry) = *role {
            *role = match moved[carry as usize] {
                Some(carry) => Role::Carry(carry),
                None => Role::Input(inits[carry as usize]),
            };
        }
    };
    looped.roles.iter_mut().for_each(constant);
    if let TripsRegion::While { roles, .. } = &mut looped.trips {
        roles.iter_mut().for_each(constant);
    }
    constants
}

/// Which carries and stacks are asked for, by somebody behind the loop or by each other.
fn needed(looped: &LoopRegion, asked: &dyn Fn(u32) -> bool) -> (Vec<bool>, Vec<bool>) {
    let mut carries: Vec<bool> = looped.carries.iter().map(|c| asked(c.output)).collect();
    let stacks: Vec<bool> = looped.stacks.iter().map(|&output| asked(output)).collect();
    if let TripsRegion::While { condition, roles } = &looped.trips {
        mark(&mut carries, roles, &read(condition));
    }
    loop {
        let before = carries.clone();
        let wanted = carries.iter().chain(&stacks);
        let results = wanted.zip(&looped.body.results).filter(|(wanted, _)| **wanted);
        let results: Vec<NodeId> = results.map(|(_, &result)| result).collect();
        mark(&mut carries, &looped.roles, &reads_of(&looped.body, &results));
        if carries == before {
            return (carries, stacks);
        }
    }
}

/// Marks the carries whose parameters are read.
fn mark(carries: &mut [bool], roles: &[Role], read: &[bool]) {
    for (role, _) in roles.iter().zip(read).filter(|(_, read)| **read) {
        if let Role::Carry(carry) = *role {
            carries[carry as usize] = true;
        }
    }
}

/// Which parameters the results depend on.
fn read(graph: &Graph) -> Vec<bool> {
    reads_of(graph, &graph.results)
}

fn reads_of(graph: &Graph, results: &[NodeId]) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    results.iter().for_each(|result| live[result.index()] = true);
    for at in (0..graph.nodes.len()).rev() {
        if live[at] {
            graph.nodes[at].inputs.iter().for_each(|input| live[input.index()] = true);
        }
    }
    graph.params.iter().map(|param| live[param.index()]).collect()
}

/// Retains the marked items; where each went.
fn keep<T>(kept: &[bool], items: &mut Vec<T>, moved: &mut Vec<Option<u32>>) {
    let mut next = 0;
    for &kept in kept {
        moved.push(kept.then_some(next));
        next += kept as u32;
    }
    let mut at = 0..;
    items.retain(|_| kept[at.next().expect("endless")]);
}

/// Retains the parameters that still have a role.
fn retain_params(
    graph: &mut Graph,
    roles: &mut Vec<Role>,
    live: &[bool],
    stays: &dyn Fn(Role, bool) -> Option<Role>,
) {
    let kept: Vec<Option<Role>> =
        roles.iter().zip(live).map(|(&role, &live)| stays(role, live)).collect();
    let mut params = Vec::new();
    for (&param, kept) in graph.params.iter().zip(&kept) {
        graph.nodes[param.index()].kind = match kept {
            Some(_) => {
                params.push(param);
                Kind::Param(params.len() as u32 - 1)
            }
            None => Kind::Empty,
        };
    }
    graph.params = params;
    *roles = kept.into_iter().flatten().collect();
}

/// The node's inputs that the loop still reads; roles and carries name these.
fn renumber_inputs(looped: &mut LoopRegion, inputs: &[NodeId]) -> Vec<NodeId> {
    let mut left = Vec::new();
    let mut moved: Vec<Option<u32>> = vec![None; inputs.len()];
    let mut renumber = |input: &mut u32| {
        let to = moved[*input as usize].get_or_insert_with(|| {
            left.push(inputs[*input as usize]);
            left.len() as u32 - 1
        });
        *input = *to;
    };
    looped.carries.iter_mut().for_each(|carry| renumber(&mut carry.init));
    let conditions = match &mut looped.trips {
        TripsRegion::While { roles, .. } => roles.as_mut_slice(),
        TripsRegion::Counted { .. } => &mut [],
    };
    for role in looped.roles.iter_mut().chain(conditions) {
        if let Role::Input(input) = role {
            renumber(input);
        }
    }
    left
}

/// Prunes a branch; the node's inputs that are left.
fn prune_branch(
    branch: &mut BranchRegion,
    inputs: &[NodeId],
    asked: &dyn Fn(u32) -> bool,
) -> Vec<NodeId> {
    let kept: Vec<bool> = branch.outputs.iter().map(|&output| asked(output)).collect();
    keep(&kept, &mut branch.outputs, &mut Vec::new());
    let mut live = vec![false; inputs.len() - 1];
    for graph in &mut branch.branches {
        keep(&kept, &mut graph.results, &mut Vec::new());
        simplified(graph);
        live.iter_mut().zip(read(graph)).for_each(|(live, read)| *live |= read);
    }
    for graph in &mut branch.branches {
        // Roles only carry the number here.
        let mut roles: Vec<Role> = (0..live.len() as u32).map(Role::Input).collect();
        retain_params(graph, &mut roles, &live, &|role, live| live.then_some(role));
    }
    let operands = inputs[1..].iter().zip(&live).filter(|(_, live)| **live);
    std::iter::once(inputs[0]).chain(operands.map(|(&input, _)| input)).collect()
}
