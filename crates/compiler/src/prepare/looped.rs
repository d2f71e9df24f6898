//! Loops: the body compiled with its carries donated, and which buffers the carries take in turn.

use super::{
    Buffers, Inside, RegionImage, Work, inside, lowered, outputs, prepare, scratch, under,
};
use crate::Options;
use crate::graph::{Graph, Kind, NodeId};
use crate::region::{Carry, LoopRegion, Role, TripsRegion};
use vramlab_ir::MemorySpace;
use vramlab_ir::kernel::{Body, Feed, Loop, ResultSource, Routine, Trips};

pub(super) fn compile(
    graph: &mut Graph,
    region: NodeId,
    looped: LoopRegion,
    options: &Options,
) -> RegionImage {
    let (compiled, notes) = Compiled::of(looped, graph.node(region).op, options);
    let outputs = outputs(graph, region);
    let inputs = graph.node(region).inputs.clone();
    let image = Image { graph, region, buffers: Buffers::default(), inputs, outputs };
    image.put_together(compiled, notes)
}

/// A loop whose insides are compiled.
struct Compiled {
    body: Inside,
    roles: Vec<Role>,
    carries: Vec<Carry>,
    stacks: Vec<u32>,
    trips: CompiledTrips,
}

enum CompiledTrips {
    Counted { length: usize, reverse: bool },
    While { condition: Box<Inside>, roles: Vec<Role> },
}

impl Compiled {
    /// And the words for copies in the body.
    fn of(looped: LoopRegion, op: &'static str, options: &Options) -> (Compiled, Vec<String>) {
        let LoopRegion { trips, mut body, roles, carries, stacks } = looped;
        let donate: Vec<bool> =
            roles.iter().map(|role| matches!(role, Role::Carry(_) | Role::Stack(_))).collect();
        prepare(&mut body, &donate, options);
        let notes = own_buffers(&mut body, &roles, carries.len());
        let body = lowered(body, op, &donate, options);
        let trips = match trips {
            TripsRegion::Counted { length, reverse } => CompiledTrips::Counted { length, reverse },
            TripsRegion::While { condition, roles } => {
                let condition = Box::new(inside(condition, op, &vec![false; roles.len()], options));
                CompiledTrips::While { condition, roles }
            }
        };
        (Compiled { body, roles, carries, stacks, trips }, notes)
    }

    /// Iterations, where they are known.
    fn length(&self) -> Option<usize> {
        match self.trips {
            CompiledTrips::Counted { length, .. } => Some(length),
            CompiledTrips::While { .. } => None,
        }
    }

    /// Bytes that body and condition work in, each in its turn.
    fn most(&self, of: fn(&Routine) -> u64) -> u64 {
        let condition = match &self.trips {
            CompiledTrips::While { condition, .. } => of(&condition.routine),
            CompiledTrips::Counted { .. } => 0,
        };
        of(&self.body.routine).max(condition)
    }
}

/// Lets every carry end each iteration in a buffer of its own: where the body hands on a constant,
/// or one value as two carries, a copy is made. The words for that.
fn own_buffers(body: &mut Graph, roles: &[Role], carries: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let mut taken: Vec<NodeId> = Vec::new();
    for at in 0..carries {
        let result = body.results[at];
        let base = body.base(result);
        let fixed = match body.node(base).kind {
            Kind::Param(param) => !matches!(roles[param as usize], Role::Carry(_)),
            _ => false,
        };
        if !fixed && !taken.contains(&base) {
            taken.push(base);
            continue;
        }
        let why = if fixed { "hands a constant on" } else { "gives the same value twice" };
        let ty = body.ty(result).clone();
        notes.push(format!("carry {at} {ty} is copied in every iteration: the body {why}"));
        let op = body.node(base).op;
        let copy = body.push(Kind::Barrier, vec![result], ty, op);
        body.results[at] = copy;
    }
    notes
}

/// How the buffers of carries change places: those of the carries first, then those behind the
/// body's fresh results.
struct Turns {
    /// After an iteration, place i holds what place `next[i]` held.
    next: Vec<u32>,
    /// Bytes at each place.
    bytes: Vec<u64>,
}

impl Turns {
    fn of(body: &Routine, roles: &[Role], carries: usize) -> Turns {
        let mut bytes = vec![0; carries];
        for (argument, role) in roles.iter().enumerate() {
            if let Role::Carry(carry) = *role {
                bytes[carry as usize] = body.slots[argument].ty.bytes();
            }
        }
        bytes.extend(&body.fresh_bytes);
        let mut next: Vec<u32> = Vec::with_capacity(bytes.len());
        for source in &body.results[..carries] {
            next.push(match *source {
                ResultSource::Fresh { index } => carries as u32 + index,
                ResultSource::Donated { argument } => match roles[argument as usize] {
                    Role::Carry(carry) => carry,
                    role => unreachable!("a carry became the buffer of {role:?}: {body:#?}"),
                },
                source => {
                    unreachable!("a carry has a buffer of its own, not {source:?}: {body:#?}")
                }
            });
        }
        // What a fresh result stands in for is free, and is the next fresh buffer of its size.
        for fresh in carries..bytes.len() {
            let left =
                |place: &usize| bytes[*place] == bytes[fresh] && !next.contains(&(*place as u32));
            let for_it = next[..carries].iter().position(|&p| p as usize == fresh);
            let free = for_it.filter(left).or_else(|| (0..carries).find(left));
            next.push(free.expect("as many carries come as go, of the same sizes") as u32);
        }
        Turns { next, bytes }
    }

    /// Where each place's buffer was at the start, after `times` iterations.
    fn after(&self, times: usize) -> Vec<u32> {
        let mut places = vec![u32::MAX; self.next.len()];
        for start in 0..self.next.len() {
            if places[start] != u32::MAX {
                continue;
            }
            let mut cycle = vec![start as u32];
            while let Some(&last) = cycle.last()
                && self.next[last as usize] != start as u32
            {
                cycle.push(self.next[last as usize]);
            }
            for (at, &place) in cycle.iter().enumerate() {
                places[place as usize] = cycle[(at + times % cycle.len()) % cycle.len()];
            }
        }
        places
    }
}

/// An image under construction.
struct Image<'g> {
    graph: &'g mut Graph,
    region: NodeId,
    buffers: Buffers,
    inputs: Vec<NodeId>,
    outputs: Vec<(u32, NodeId)>,
}

impl Image<'_> {
    fn put_together(mut self, compiled: Compiled, mut notes: Vec<String>) -> RegionImage {
        let op = self.graph.node(self.region).op;
        let arguments = self.feeds(&compiled.roles, &compiled.stacks);
        let turns = Turns::of(&compiled.body.routine, &compiled.roles, compiled.carries.len());
        let first: Vec<NodeId> =
            compiled.carries.iter().map(|c| self.inputs[c.init as usize]).collect();
        let inits: Vec<u32> = first.iter().map(|&init| self.buffers.read(init)).collect();
        let results: Vec<u32> = compiled.carries.iter().map(|c| self.output(c.output)).collect();
        let storages = self.storages(&turns, &results, compiled.length());
        let temp_bytes = compiled.most(|routine| routine.temp_bytes);
        let scratch = (temp_bytes > 0).then(|| self.scratch(temp_bytes));
        let host_bytes = compiled.most(|routine| routine.host_temp_bytes);
        let host_scratch =
            (host_bytes > 0).then(|| self.scratch_in(host_bytes, MemorySpace::PinnedHost));
        let copied: Vec<(NodeId, NodeId)> = storages
            .iter()
            .zip(&first)
            .map(|(&storage, &init)| (self.buffers.nodes[storage as usize], init))
            .collect();
        let in_place = self.in_place(&copied, &compiled);
        let iterations = compiled.length();
        if iterations.is_none() {
            notes.push(format!(
                "{op}: its work is counted once, for how often it runs is not known"
            ));
        }
        let work = Work::of(&compiled.body.routine.kernels).times(iterations.unwrap_or(1) as u64);
        let mut insides = vec![("body", compiled.body.text)];
        notes.extend(under(op, &compiled.body.notes));
        let trips = match compiled.trips {
            CompiledTrips::Counted { length, reverse } => Trips::Counted { length, reverse },
            CompiledTrips::While { condition, roles } => {
                insides.insert(0, ("condition", condition.text));
                notes.extend(under(op, &condition.notes));
                let arguments = self.feeds(&roles, &[]);
                let holds = self.scratch(1);
                Trips::While { condition: condition.routine, arguments, holds }
            }
        };
        let Buffers { nodes, reads, writes } = self.buffers;
        let body = compiled.body.routine;
        let next = turns.next;
        let looped =
            Loop { trips, body, arguments, inits, storages, next, results, scratch, host_scratch };
        RegionImage {
            body: Body::Loop(Box::new(looped)),
            buffers: nodes,
            reads,
            writes,
            in_place,
            copied,
            work,
            fused_bytes: compiled.body.fused_bytes,
            notes,
            insides,
        }
    }

    fn feeds(&mut self, roles: &[Role], stacks: &[u32]) -> Vec<Feed> {
        let feed = |role: &Role| match *role {
            Role::Input(input) => {
                let input = self.inputs[input as usize];
                Feed::Buffer(self.buffers.read(input))
            }
            Role::Carry(carry) => Feed::Carry(carry),
            Role::Counter => Feed::Counter,
            Role::Stack(stack) => Feed::Buffer(self.output(stacks[stack as usize])),
        };
        roles.iter().map(feed).collect()
    }

    /// The buffer of one of the node's outputs.
    fn output(&mut self, number: u32) -> u32 {
        let output = self.outputs.iter().find(|(at, _)| *at == number);
        let &(_, id) = output.expect("a region has a node for every result");
        self.buffers.write(id)
    }

    fn scratch(&mut self, bytes: u64) -> u32 {
        self.scratch_in(bytes, MemorySpace::Device)
    }

    fn scratch_in(&mut self, bytes: u64, memory: MemorySpace) -> u32 {
        let id = scratch(self.graph, self.region, bytes, memory);
        // Written and read here alone, so that it ends here.
        self.buffers.read(id);
        self.buffers.write(id)
    }

    /// The first buffer of each place: such that the carries end in their results' buffers.
    fn storages(&mut self, turns: &Turns, results: &[u32], times: Option<usize>) -> Vec<u32> {
        let ends = turns.after(times.unwrap_or(0));
        let mut storages = vec![u32::MAX; turns.next.len()];
        for (&end, &result) in ends.iter().zip(results) {
            storages[end as usize] = result;
        }
        for (storage, &bytes) in storages.iter_mut().zip(&turns.bytes) {
            if *storage == u32::MAX {
                *storage = self.scratch(bytes);
            }
        }
        storages
    }

    /// The pairs (storage, first value) of values that the loop reads as nothing else: they may
    /// become the storage.
    fn in_place(&self, copied: &[(NodeId, NodeId)], compiled: &Compiled) -> Vec<(NodeId, NodeId)> {
        let base = |input: u32| self.graph.base(self.inputs[input as usize]);
        let constant = |roles: &[Role]| -> Vec<NodeId> {
            let inputs = roles.iter().filter_map(|role| match *role {
                Role::Input(input) => Some(base(input)),
                _ => None,
            });
            inputs.collect()
        };
        let mut read = constant(&compiled.roles);
        if let CompiledTrips::While { roles, .. } = &compiled.trips {
            read.extend(constant(roles));
        }
        read.extend(compiled.carries.iter().map(|carry| base(carry.init)));
        let alone = |init: NodeId| {
            let init = self.graph.base(init);
            read.iter().filter(|&&other| other == init).count() == 1
        };
        copied.iter().copied().filter(|&(_, init)| alone(init)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_turns() {
        // Two carries that change places, and one that swaps with a fresh buffer.
        let turns = Turns { next: vec![1, 0, 3, 2], bytes: vec![4; 4] };
        assert_eq!(turns.after(0), [0, 1, 2, 3]);
        assert_eq!(turns.after(1), [1, 0, 3, 2]);
        assert_eq!(turns.after(1_000_000_000), [0, 1, 2, 3]);
        let three = Turns { next: vec![1, 2, 0], bytes: vec![4; 3] };
        assert_eq!(three.after(2), [2, 0, 1]);
        assert_eq!(three.after(5), [2, 0, 1]);
    }
}
