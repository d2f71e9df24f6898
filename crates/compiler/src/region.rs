//! Loops and branches in the graph: their insides are graphs of their own.
//!
//! A scan's body gets the whole arrays with the counter and takes its slices itself, and it updates
//! the stacked results in place; so the passes see slices as they see any other view, and no slice
//! is ever copied. An array that is computed from positions alone (a range) is computed in the body.

use crate::graph::{Graph, Kind, NodeId, Transfer};
use vramlab_ir::lowering::{ScanLoop, WhileLoop};
use vramlab_ir::{DType, Fault, Func, Inst, Literal, Lowering, ScalarProgram, Type};

/// The inside of a [`Kind::Region`].
#[derive(Clone, Debug)]
pub(crate) enum Region {
    Loop(LoopRegion),
    Branch(BranchRegion),
}

#[derive(Clone, Debug)]
pub(crate) struct LoopRegion {
    pub trips: TripsRegion,
    pub body: Graph,
    /// What each of the body's parameters is.
    pub roles: Vec<Role>,
    /// The body's results are the next values of these, in order, then the updated stacks.
    pub carries: Vec<Carry>,
    /// The node's outputs that are stacked slices.
    pub stacks: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum TripsRegion {
    /// At least two iterations.
    Counted { length: usize, reverse: bool },
    /// The condition's one result, and what its parameters are.
    While { condition: Graph, roles: Vec<Role> },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry {
    /// The node's input with the first value.
    pub init: u32,
    /// The node's output with the last one.
    pub output: u32,
}

/// What a parameter of a loop's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An input of the node.
    Input(u32),
    /// A carry, by position.
    Carry(u32),
    Counter,
    /// A stacked result that the body updates, by position.
    Stack(u32),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BranchRegion {
    /// Taken when input 0 holds, and when not. Their parameters are the node's inputs from 1 on.
    pub branches: [Graph; 2],
    /// The node's outputs that the branches' results are.
    pub outputs: Vec<u32>,
}

/// The inside of a loop under construction.
#[derive(Default)]
struct Inside {
    graph: Graph,
    roles: Vec<Role>,
    counter: Option<NodeId>,
}

impl Inside {
    fn param(&mut self, role: Role, ty: Type) -> NodeId {
        let id = self.graph.push(
            Kind::Param(self.graph.params.len() as u32),
            Vec::new(),
            ty,
            "argument",
        );
        self.graph.params.push(id);
        self.roles.push(role);
        id
    }

    fn counter(&mut self) -> NodeId {
        if let Some(counter) = self.counter {
            return counter;
        }
        let counter = self.param(Role::Counter, Type::new(DType::I32, []));
        self.counter = Some(counter);
        counter
    }

    /// A value of the graph outside, the same in every iteration.
    fn constant(&mut self, outer: &Graph, id: NodeId, inputs: &mut Vec<NodeId>) -> NodeId {
        let ty = outer.ty(id).clone();
        if ty.shape.elements() == 0 {
            return self.graph.push(Kind::Empty, Vec::new(), ty, "constant");
        }
        if let Some(value) = outer.literal(id) {
            return self.graph.fill(value, ty, "constant");
        }
        let role = Role::Input(input(id, inputs));
        match self.roles.iter().position(|&known| known == role) {
            Some(at) => self.graph.params[at],
            None => self.param(role, ty),
        }
    }

    /// The window of one slice at the counter: starts for each axis of an array.
    fn starts(&mut self, rank: usize) -> Vec<NodeId> {
        let counter = self.counter();
        let zero = Literal::from_i64(DType::I32, 0);
        let mut starts = vec![counter];
        for _ in 1..rank {
            starts.push(self.graph.fill(zero, Type::new(DType::I32, []), "constant"));
        }
        starts
    }

    /// The slice that an iteration gets of an array outside.
    fn slice(&mut self, outer: &Graph, id: NodeId, ty: Type, inputs: &mut Vec<NodeId>) -> NodeId {
        if ty.shape.elements() == 0 {
            return self.graph.push(Kind::Empty, Vec::new(), ty, "slice");
        }
        if let Some(value) = outer.literal(id) {
            return self.graph.fill(value, ty, "constant");
        }
        if let Some(program) = of_position(outer, id) {
            let counter = self.counter();
            return self.graph.push(Kind::Map(program), vec![counter], ty, outer.node(id).op);
        }
        let whole = self.param(Role::Input(input(id, inputs)), outer.ty(id).clone());
        if ty.is_host() {
            let inputs = vec![whole, self.counter()];
            return self.graph.push(Kind::Transfer(Transfer::From), inputs, ty, "slice");
        }
        let starts = self.starts(ty.shape.rank() + 1);
        let window = Type::new(ty.dtype, [&[1], ty.shape.dims()].concat());
        let inputs = std::iter::once(whole).chain(starts).collect();
        let window = self.graph.push(Kind::DynamicSlice, inputs, window, "slice");
        self.graph.push(Kind::Reshape, vec![window], ty, "slice")
    }

    /// The stack with its slice at the counter replaced.
    fn stack(&mut self, at: u32, slice: NodeId, whole: &Type) -> NodeId {
        let stack = self.param(Role::Stack(at), whole.clone());
        if whole.is_host() {
            let counter = self.counter();
            return self.graph.put(stack, slice, counter);
        }
        let shape = &self.graph.ty(slice).shape;
        let window = Type::new(whole.dtype, [&[1], shape.dims()].concat());
        let slice = self.graph.push(Kind::Reshape, vec![slice], window, "stack");
        let starts = self.starts(whole.shape.rank());
        let inputs = [stack, slice].into_iter().chain(starts).collect();
        self.graph.push(Kind::Update, inputs, whole.clone(), "stack")
    }
}

/// The position of a node among the inputs, where it is put when it is new.
fn input(id: NodeId, inputs: &mut Vec<NodeId>) -> u32 {
    let at = inputs.iter().position(|&known| known == id).unwrap_or_else(|| {
        inputs.push(id);
        inputs.len() - 1
    });
    at as u32
}

/// The program of a map without operands, for one slice: the leading coordinate is its operand.
fn of_position(graph: &Graph, id: NodeId) -> Option<ScalarProgram> {
    let node = graph.node(id);
    let Kind::Map(program) = &node.kind else { return None };
    if !node.inputs.is_empty() || program.insts.contains(&Inst::Position) {
        return None;
    }
    let mut program = program.clone();
    for inst in &mut program.insts {
        if let Inst::Index { axis } = inst {
            *inst = match *axis {
                0 => Inst::Input { input: 0, dtype: DType::I32 },
                axis => Inst::Index { axis: axis - 1 },
            };
        }
    }
    Some(program)
}

impl Graph {
    /// A copy to another memory. What was a slice of a stack in host memory is copied from the stack.
    pub(crate) fn transfer(&mut self, inputs: Vec<NodeId>, ty: Type, op: &'static str) -> NodeId {
        let source = self.node(self.base(inputs[0]));
        if source.kind == Kind::Transfer(Transfer::From) && source.ty.is_host() {
            let inputs = [&source.inputs[..], &inputs[1..]].concat();
            return self.push(Kind::Transfer(Transfer::From), inputs, ty, op);
        }
        self.push(Kind::Transfer(Transfer::Whole), inputs, ty, op)
    }

    /// A stack in host memory with its slice at `counter` replaced. What was copied to the host is copied
    /// into the stack.
    fn put(&mut self, stack: NodeId, slice: NodeId, counter: NodeId) -> NodeId {
        let source = self.node(self.base(slice));
        let mut inputs = vec![stack, slice, counter];
        if source.kind == Kind::Transfer(Transfer::Whole) {
            inputs[1] = source.inputs[0];
            inputs.extend(&source.inputs[1..]);
        }
        let ty = self.ty(stack).clone();
        self.push(Kind::Transfer(Transfer::Into), inputs, ty, "stack")
    }

    pub(crate) fn scan(
        &mut self,
        scan: &ScanLoop,
        operands: &[NodeId],
        results: &[Type],
        op: &'static str,
    ) -> Result<Vec<NodeId>, Fault> {
        let (consts, rest) = operands.split_at(scan.consts);
        let (inits, arrays) = rest.split_at(scan.carries);
        let slices: Vec<Type> = scan.body.param_types().split_off(consts.len() + inits.len());
        match scan.length {
            0 => {
                let empty = results[inits.len()..].iter();
                let mut outputs = inits.to_vec();
                outputs.extend(empty.map(|ty| self.push(Kind::Empty, Vec::new(), ty.clone(), op)));
                Ok(outputs)
            }
            1 => {
                let mut arguments = [consts, inits].concat();
                for (&array, ty) in arrays.iter().zip(slices) {
                    arguments.push(self.lower(Lowering::Reshape, vec![array], ty, op));
                }
                let mut outputs = self.inline(&scan.body, &arguments)?;
                for (output, ty) in outputs.iter_mut().zip(results).skip(inits.len()) {
                    *output = self.lower(Lowering::Reshape, vec![*output], ty.clone(), op);
                }
                Ok(outputs)
            }
            length => {
                let mut inside = Inside::default();
                let mut inputs = Vec::new();
                let mut arguments = Vec::with_capacity(operands.len());
                for &id in consts {
                    arguments.push(inside.constant(self, id, &mut inputs));
                }
                let carries = self.carries(inits, &mut [&mut inside], &mut inputs);
                arguments.extend(&carries.arguments[0]);
                for (&id, ty) in arrays.iter().zip(slices) {
                    arguments.push(inside.slice(self, id, ty, &mut inputs));
                }
                let values = inside.graph.inline(&scan.body, &arguments)?;
                let mut next: Vec<NodeId> =
                    carries.kept.iter().map(|carry| values[carry.output as usize]).collect();
                let mut stacks = Vec::new();
                for (output, whole) in results.iter().enumerate().skip(inits.len()) {
                    if whole.shape.elements() > 0 {
                        next.push(inside.stack(stacks.len() as u32, values[output], whole));
                        stacks.push(output as u32);
                    }
                }
                inside.graph.results = next;
                let region = LoopRegion {
                    trips: TripsRegion::Counted { length, reverse: scan.reverse },
                    body: inside.graph,
                    roles: inside.roles,
                    carries: carries.kept,
                    stacks,
                };
                Ok(self.region(Region::Loop(region), inputs, results, op))
            }
        }
    }

    pub(crate) fn repeat(
        &mut self,
        looped: &WhileLoop,
        operands: &[NodeId],
        results: &[Type],
        op: &'static str,
    ) -> Result<Vec<NodeId>, Fault> {
        let (cond_consts, rest) = operands.split_at(looped.cond_consts);
        let (body_consts, inits) = rest.split_at(looped.body_consts);
        let (mut condition, mut body) = (Inside::default(), Inside::default());
        let mut inputs = Vec::new();
        let mut asked: Vec<NodeId> =
            cond_consts.iter().map(|&id| condition.constant(self, id, &mut inputs)).collect();
        let mut arguments: Vec<NodeId> =
            body_consts.iter().map(|&id| body.constant(self, id, &mut inputs)).collect();
        let carries = self.carries(inits, &mut [&mut condition, &mut body], &mut inputs);
        asked.extend(&carries.arguments[0]);
        arguments.extend(&carries.arguments[1]);
        condition.graph.results = condition.graph.inline(&looped.cond, &asked)?;
        let values = body.graph.inline(&looped.body, &arguments)?;
        body.graph.results =
            carries.kept.iter().map(|carry| values[carry.output as usize]).collect();
        let region = LoopRegion {
            trips: TripsRegion::While { condition: condition.graph, roles: condition.roles },
            body: body.graph,
            roles: body.roles,
            carries: carries.kept,
            stacks: Vec::new(),
        };
        Ok(self.region(Region::Loop(region), inputs, results, op))
    }

    /// Parameters for carried values, in each of the graphs inside. Values without elements are not
    /// carried.
    fn carries(
        &self,
        inits: &[NodeId],
        insides: &mut [&mut Inside],
        inputs: &mut Vec<NodeId>,
    ) -> Carries {
        let mut carries = Carries { kept: Vec::new(), arguments: vec![Vec::new(); insides.len()] };
        for (output, &id) in inits.iter().enumerate() {
            let ty = self.ty(id).clone();
            let role = Role::Carry(carries.kept.len() as u32);
            let empty = ty.shape.elements() == 0;
            for (inside, arguments) in insides.iter_mut().zip(&mut carries.arguments) {
                arguments.push(match empty {
                    true => inside.graph.push(Kind::Empty, Vec::new(), ty.clone(), "carry"),
                    false => inside.param(role, ty.clone()),
                });
            }
            if !empty {
                carries.kept.push(Carry { init: input(id, inputs), output: output as u32 });
            }
        }
        carries
    }

    pub(crate) fn cond(
        &mut self,
        branches: [&Func; 2],
        operands: &[NodeId],
        results: &[Type],
        op: &'static str,
    ) -> Result<Vec<NodeId>, Fault> {
        if let Some(holds) = self.literal(operands[0]) {
            let taken = branches[(holds.bits() == 0) as usize];
            return self.inline(taken, &operands[1..]);
        }
        let mut insides = [Inside::default(), Inside::default()];
        let mut inputs = Vec::new();
        let mut graphs = Vec::new();
        for (inside, func) in insides.iter_mut().zip(branches) {
            let arguments: Vec<NodeId> =
                operands[1..].iter().map(|&id| inside.constant(self, id, &mut inputs)).collect();
            inside.graph.results = inside.graph.inline(func, &arguments)?;
            let outputs = results.iter().zip(&inside.graph.results);
            let kept = outputs.filter(|(ty, _)| ty.shape.elements() > 0).map(|(_, &id)| id);
            inside.graph.results = kept.collect();
            graphs.push(std::mem::take(&mut inside.graph));
        }
        let on_false = graphs.pop().expect("two branches");
        let branches = [graphs.pop().expect("two branches"), on_false];
        let kept = results.iter().zip(0..).filter(|(ty, _)| ty.shape.elements() > 0);
        let region = BranchRegion { branches, outputs: kept.map(|(_, output)| output).collect() };
        inputs.insert(0, operands[0]);
        Ok(self.region(Region::Branch(region), inputs, results, op))
    }

    /// The node of a region, and a node for each of its results.
    fn region(
        &mut self,
        region: Region,
        inputs: Vec<NodeId>,
        results: &[Type],
        op: &'static str,
    ) -> Vec<NodeId> {
        let kind = Kind::Region(self.regions.len() as u32);
        self.regions.push(region);
        let node = self.push(kind, inputs, Type::new(DType::U8, [0]), op);
        let output = |(ty, at): (&Type, u32)| match ty.shape.elements() {
            0 => self.push(Kind::Empty, Vec::new(), ty.clone(), op),
            _ => self.push(Kind::Output(at), vec![node], ty.clone(), op),
        };
        results.iter().zip(0..).map(output).collect()
    }
}

struct Carries {
    kept: Vec<Carry>,
    /// For each graph inside: the nodes that stand for all carried values.
    arguments: Vec<Vec<NodeId>>,
}
