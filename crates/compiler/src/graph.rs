//! The program between tracing and loops: one node a value, calls inlined, each op already reduced
//! to one of a few loop classes over flat row-major arrays. Loops and branches hold graphs of their
//! own; each of their results is a node.

use crate::form::dense_strides;
use crate::prepare::RegionImage;
use crate::region::Region;
use vramlab_ir::lowering::{Convolution, DotAxes};
use vramlab_ir::{
    DType, Fault, Func, Inst, Literal, Lowering, ReduceKind, ScalarProgram, Shape, Stage, Type,
};

/// A node of a [`Graph`]: its position. Operands come before their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub u32);

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    pub inputs: Vec<NodeId>,
    pub ty: Type,
    /// The op's name, for kernels' names and notes.
    pub op: &'static str,
    /// What the equation was there for, for explanations.
    pub stage: Stage,
}

/// What a node computes. Sizes are of flat row-major arrays; none of them is 0.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) enum Kind {
    Param(u32),
    /// No elements: a buffer that nothing writes.
    Empty,
    Map(ScalarProgram),
    /// Input 0 as `[outer, reduced, inner]`, reduced over the middle.
    Reduce {
        kind: ReduceKind,
        outer: usize,
        reduced: usize,
        inner: usize,
    },
    View {
        offset: isize,
        strides: Vec<isize>,
    },
    Reshape,
    /// Input 0 under a name that passes keep; later inputs only have to be computed before.
    Barrier,
    /// A copy to the memory of the node's type. Inputs behind those that `Transfer` names only have to be
    /// computed before.
    Transfer(Transfer),
    Concatenate {
        axis: usize,
    },
    Pad {
        low: Vec<usize>,
    },
    DynamicSlice,
    Update,
    /// `[batch, m, k] · [batch, k, n]`.
    Dot {
        batch: usize,
        m: usize,
        n: usize,
        k: usize,
    },
    /// `[n, s…, c]` under filters `[k…, c, o]`.
    Conv(Convolution),
    /// Input 0 as `[outer, length, inner]`, combined along the middle up to each element.
    Cumulative {
        kind: ReduceKind,
        reverse: bool,
        outer: usize,
        length: usize,
        inner: usize,
    },
    /// Input 0 as `[outer, extent, inner]` with input 2, `[outer, count, inner]`, added at the
    /// indices of input 1.
    Scatter {
        outer: usize,
        extent: usize,
        count: usize,
        inner: usize,
    },
    /// A loop or a branch, by its number in the graph. It has no value of its own.
    Region(u32),
    /// A result of the region that is input 0.
    Output(u32),
    /// Bytes that the region that is input 0 works in.
    Scratch,
}

/// What is copied between memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transfer {
    /// Input 0.
    Whole,
    /// Of input 0, a stack, the slice at input 1, an i32 scalar.
    From,
    /// Input 1 into input 0, a stack, at input 2, an i32 scalar: the node is the stack then, in its place.
    Into,
}

impl Transfer {
    /// Which input is copied.
    pub fn source(self) -> usize {
        match self {
            Transfer::Whole | Transfer::From => 0,
            Transfer::Into => 1,
        }
    }

    /// How many inputs it reads.
    pub fn reads(self) -> usize {
        match self {
            Transfer::Whole => 1,
            Transfer::From => 2,
            Transfer::Into => 3,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    pub params: Vec<NodeId>,
    /// What people call them; see [`Func::arg_names`].
    pub arg_names: Vec<String>,
    pub results: Vec<NodeId>,
    /// The insides of loops and branches.
    pub regions: Vec<Region>,
    /// The images of those that a result depends on, once they are compiled.
    pub images: Vec<Option<RegionImage>>,
    /// What is pushed now is there for this.
    pub stage: Stage,
}

impl Graph {
    /// The graph of `func`, with every call inlined.
    ///
    /// # Errors
    /// A call whose inner function does not fit its arguments.
    pub fn trace(func: &Func) -> Result<Graph, Fault> {
        let mut graph = Graph { arg_names: func.arg_names.clone(), ..Graph::default() };
        graph.nodes.reserve(func.types.len());
        for (index, &param) in func.params.iter().enumerate() {
            let ty = func.ty(param).clone();
            let id = graph.push(Kind::Param(index as u32), Vec::new(), ty, "argument");
            graph.params.push(id);
        }
        graph.results = graph.inline(func, &graph.params.clone())?;
        Ok(graph)
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub fn ty(&self, id: NodeId) -> &Type {
        &self.node(id).ty
    }

    pub fn elements(&self, id: NodeId) -> usize {
        self.ty(id).shape.elements()
    }

    /// The node whose stored bytes are this node's: through reshapes. A barrier that is stored has
    /// bytes of its own: a copy is made of it.
    pub fn base(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while let Kind::Reshape = self.node(id).kind {
            id = self.node(id).inputs[0];
        }
        id
    }

    /// Which nodes a result depends on, and the parameters.
    pub fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        for &id in self.results.iter().chain(&self.params) {
            live[id.index()] = true;
        }
        for at in (0..self.nodes.len()).rev() {
            if live[at] {
                for input in &self.nodes[at].inputs {
                    live[input.index()] = true;
                }
            }
        }
        live
    }

    /// The live nodes that compute something of arrays: no parameters, constants or reshapes.
    pub fn computing(&self) -> impl Iterator<Item = NodeId> {
        let live = self.live();
        (0..self.nodes.len() as u32).map(NodeId).filter(move |&id| {
            let node = self.node(id);
            live[id.index()]
                && !matches!(
                    node.kind,
                    Kind::Param(_) | Kind::Empty | Kind::Reshape | Kind::Output(_) | Kind::Scratch
                )
                && self.literal(id).is_none()
        })
    }

    /// The literal that every element of the node is, when it is a fill.
    pub fn literal(&self, id: NodeId) -> Option<Literal> {
        let node = self.node(id);
        match &node.kind {
            Kind::Map(program) if node.inputs.is_empty() => match program.insts.as_slice() {
                [Inst::Const(value)] => Some(*value),
                _ => None,
            },
            Kind::Reshape => self.literal(node.inputs[0]),
            Kind::View { .. } => self.literal(node.inputs[0]),
            _ => None,
        }
    }

    pub fn push(&mut self, kind: Kind, inputs: Vec<NodeId>, ty: Type, op: &'static str) -> NodeId {
        self.nodes.push(Node { kind, inputs, ty, op, stage: self.stage });
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub fn inline(&mut self, func: &Func, arguments: &[NodeId]) -> Result<Vec<NodeId>, Fault> {
        let mut values: Vec<Option<NodeId>> = vec![None; func.types.len()];
        for (param, &argument) in func.params.iter().zip(arguments) {
            values[param.index()] = Some(argument);
        }
        let of = |values: &[Option<NodeId>], v: vramlab_ir::Value| {
            values[v.index()].expect("a verified function defines values before their use")
        };
        let mut types: Vec<Type> = Vec::new();
        let around = self.stage;
        for eqn in &func.eqns {
            // What a backward equation applies is backward as a whole.
            self.stage = if around == Stage::Forward { eqn.stage } else { around };
            let inputs: Vec<NodeId> = eqn.inputs.iter().map(|&v| of(&values, v)).collect();
            types.clear();
            types.extend(eqn.inputs.iter().map(|&v| func.ty(v).clone()));
            match eqn.op.lower(&types, &eqn.params) {
                lowering @ (Lowering::Call(_)
                | Lowering::Scan(_)
                | Lowering::While(_)
                | Lowering::Cond { .. }) => {
                    let types: Vec<Type> =
                        eqn.outputs.iter().map(|&v| func.ty(v).clone()).collect();
                    let results = self.apply(lowering, &inputs, &types, eqn.op.name())?;
                    for (&output, result) in eqn.outputs.iter().zip(results) {
                        values[output.index()] = Some(result);
                    }
                }
                lowering => {
                    let output = eqn.outputs[0];
                    let ty = func.ty(output).clone();
                    let id = self.lower(lowering, inputs, ty, eqn.op.name());
                    values[output.index()] = Some(id);
                }
            }
        }
        self.stage = around;
        Ok(func.results.iter().map(|&v| of(&values, v)).collect())
    }

    /// Functions that an equation holds, applied.
    fn apply(
        &mut self,
        lowering: Lowering,
        inputs: &[NodeId],
        results: &[Type],
        op: &'static str,
    ) -> Result<Vec<NodeId>, Fault> {
        match lowering {
            Lowering::Call(inner) => self.inline(&inner, inputs),
            Lowering::Scan(scan) => self.scan(&scan, inputs, results, op),
            Lowering::While(looped) => self.repeat(&looped, inputs, results, op),
            Lowering::Cond { on_true, on_false } => {
                self.cond([&on_true, &on_false], inputs, results, op)
            }
            _ => unreachable!("the other loop classes hold no functions"),
        }
    }

    /// A constant array.
    pub fn fill(&mut self, value: Literal, ty: Type, op: &'static str) -> NodeId {
        self.push(Kind::Map(ScalarProgram::constant(value)), Vec::new(), ty, op)
    }

    pub fn lower(
        &mut self,
        lowering: Lowering,
        inputs: Vec<NodeId>,
        ty: Type,
        op: &'static str,
    ) -> NodeId {
        if ty.shape.elements() == 0 {
            return self.push(Kind::Empty, Vec::new(), ty, op);
        }
        match lowering {
            Lowering::Elementwise(program) => self.push(Kind::Map(program), inputs, ty, op),
            Lowering::Reduce { kind, axes } => self.reduce(kind, &axes, inputs[0], ty, op),
            Lowering::View { offset, strides } => {
                self.view(offset as isize, strides, inputs[0], ty, op)
            }
            Lowering::Reshape => self.push(Kind::Reshape, inputs, ty, op),
            Lowering::Concatenate { axis } => self.concatenate(axis, inputs, ty, op),
            Lowering::Pad { low } => self.pad(low, inputs, ty, op),
            Lowering::DynamicSlice => self.push(Kind::DynamicSlice, inputs, ty, op),
            Lowering::DynamicUpdateSlice if self.elements(inputs[1]) == 0 => {
                self.push(Kind::Reshape, vec![inputs[0]], ty, op)
            }
            Lowering::DynamicUpdateSlice => self.push(Kind::Update, inputs, ty, op),
            Lowering::Dot(axes) => self.dot(&axes, inputs[0], inputs[1], ty, op),
            Lowering::Conv(_) if self.elements(inputs[0]) == 0 => {
                self.fill(Literal::from_i64(ty.dtype, 0), ty, op)
            }
            Lowering::Conv(convolution) => self.push(Kind::Conv(convolution), inputs, ty, op),
            Lowering::Identity | Lowering::Barrier => self.push(Kind::Barrier, inputs, ty, op),
            Lowering::Transfer => self.transfer(inputs, ty, op),
            Lowering::Cumulative { kind, axis, reverse } => {
                self.cumulative(kind, axis, reverse, inputs[0], ty, op)
            }
            Lowering::ScatterAdd { .. } if self.elements(inputs[2]) == 0 => {
                self.push(Kind::Reshape, vec![inputs[0]], ty, op)
            }
            Lowering::ScatterAdd { axis } => {
                let [outer, extent, inner] = around(&ty.shape, axis);
                let count = self.elements(inputs[1]);
                self.push(Kind::Scatter { outer, extent, count, inner }, inputs, ty, op)
            }
            Lowering::Call(_) | Lowering::Scan(_) | Lowering::While(_) | Lowering::Cond { .. } => {
                unreachable!("functions are applied where their equation is met")
            }
        }
    }

    /// A view, or a reshape when it reads the whole input in order.
    pub fn view(
        &mut self,
        offset: isize,
        strides: Vec<isize>,
        input: NodeId,
        ty: Type,
        op: &'static str,
    ) -> NodeId {
        let in_order = offset == 0
            && ty.shape.elements() == self.elements(input)
            && dense_strides(&ty.shape)
                .iter()
                .zip(&strides)
                .zip(ty.shape.iter())
                .all(|((dense, stride), &extent)| extent == 1 || dense == stride);
        let kind = if in_order { Kind::Reshape } else { Kind::View { offset, strides } };
        self.push(kind, vec![input], ty, op)
    }

    /// Neighbouring axes that are both reduced or both kept are one; what is left is reduced from
    /// the inside out, one block of axes a node.
    fn reduce(
        &mut self,
        kind: ReduceKind,
        axes: &[usize],
        input: NodeId,
        ty: Type,
        op: &'static str,
    ) -> NodeId {
        if self.elements(input) == 0 {
            return self.fill(identity(kind, ty.dtype), ty, op);
        }
        let mut blocks: Vec<(bool, usize)> = Vec::new();
        for (axis, &extent) in self.ty(input).shape.iter().enumerate() {
            let reduced = axes.contains(&axis);
            match blocks.last_mut() {
                _ if extent == 1 => {}
                Some((last, total)) if *last == reduced => *total *= extent,
                _ => blocks.push((reduced, extent)),
            }
        }
        let positions = matches!(kind, ReduceKind::ArgMax | ReduceKind::ArgMin);
        if !blocks.iter().any(|&(reduced, _)| reduced) {
            if positions {
                return self.fill(Literal::from_i64(DType::I32, 0), ty, op);
            }
            return self.push(Kind::Reshape, vec![input], ty, op);
        }
        let mut value = input;
        while let Some(at) = blocks.iter().rposition(|&(reduced, _)| reduced) {
            let extent = |part: &[(bool, usize)]| part.iter().map(|&(_, e)| e).product::<usize>();
            let (outer, inner) = (extent(&blocks[..at]), extent(&blocks[at + 1..]));
            let reduced = blocks.remove(at).1;
            let last = !blocks.iter().any(|&(r, _)| r);
            let result = if last { ty.clone() } else { Type::new(ty.dtype, [outer, inner]) };
            let kind = Kind::Reduce { kind, outer, reduced, inner };
            value = self.push(kind, vec![value], result, op);
        }
        value
    }

    fn cumulative(
        &mut self,
        kind: ReduceKind,
        axis: usize,
        reverse: bool,
        input: NodeId,
        ty: Type,
        op: &'static str,
    ) -> NodeId {
        let [outer, length, inner] = around(&ty.shape, axis);
        match length {
            1 => self.push(Kind::Reshape, vec![input], ty, op),
            _ => {
                let kind = Kind::Cumulative { kind, reverse, outer, length, inner };
                self.push(kind, vec![input], ty, op)
            }
        }
    }

    fn concatenate(
        &mut self,
        axis: usize,
        inputs: Vec<NodeId>,
        ty: Type,
        op: &'static str,
    ) -> NodeId {
        let inputs: Vec<NodeId> =
            inputs.into_iter().filter(|&input| self.elements(input) > 0).collect();
        match inputs.len() {
            1 => self.push(Kind::Reshape, inputs, ty, op),
            _ => self.push(Kind::Concatenate { axis }, inputs, ty, op),
        }
    }

    fn pad(&mut self, low: Vec<usize>, inputs: Vec<NodeId>, ty: Type, op: &'static str) -> NodeId {
        if self.elements(inputs[0]) == 0 {
            let strides = vec![0; ty.shape.rank()];
            return self.push(Kind::View { offset: 0, strides }, vec![inputs[1]], ty, op);
        }
        if self.ty(inputs[0]).shape == ty.shape {
            return self.push(Kind::Reshape, vec![inputs[0]], ty, op);
        }
        self.push(Kind::Pad { low }, inputs, ty, op)
    }

    /// Brings both operands to `[batch, m, k]` and `[batch, k, n]` by views, which the product
    /// reads through.
    fn dot(
        &mut self,
        axes: &DotAxes,
        lhs: NodeId,
        rhs: NodeId,
        ty: Type,
        op: &'static str,
    ) -> NodeId {
        let free = |rank: usize, batch: &[usize], contract: &[usize]| -> Vec<usize> {
            (0..rank).filter(|a| !batch.contains(a) && !contract.contains(a)).collect()
        };
        let (left, right) = (self.ty(lhs).shape.clone(), self.ty(rhs).shape.clone());
        let lhs_free = free(left.rank(), &axes.lhs_batch, &axes.lhs_contract);
        let rhs_free = free(right.rank(), &axes.rhs_batch, &axes.rhs_contract);
        let extent = |shape: &Shape, of: &[usize]| of.iter().map(|&a| shape[a]).product::<usize>();
        let batch = extent(&left, &axes.lhs_batch);
        let (m, n) = (extent(&left, &lhs_free), extent(&right, &rhs_free));
        let k = extent(&left, &axes.lhs_contract);
        if k == 0 {
            return self.fill(Literal::from_i64(ty.dtype, 0), ty, op);
        }
        let lhs = self.permute(lhs, &[&axes.lhs_batch, &lhs_free, &axes.lhs_contract], op);
        let rhs = self.permute(rhs, &[&axes.rhs_batch, &axes.rhs_contract, &rhs_free], op);
        self.push(Kind::Dot { batch, m, n, k }, vec![lhs, rhs], ty, op)
    }

    fn permute(&mut self, input: NodeId, order: &[&[usize]], op: &'static str) -> NodeId {
        let order: Vec<usize> = order.iter().flat_map(|part| part.iter().copied()).collect();
        if order.is_sorted() {
            return input;
        }
        let ty = self.ty(input);
        let weights = dense_strides(&ty.shape);
        let dims: Vec<usize> = order.iter().map(|&a| ty.shape[a]).collect();
        let strides: Vec<isize> = order.iter().map(|&a| weights[a]).collect();
        let ty = Type::new(ty.dtype, dims);
        self.view(0, strides, input, ty, op)
    }
}

/// Elements before an axis, along it, and behind it.
fn around(shape: &Shape, axis: usize) -> [usize; 3] {
    let extent = |part: &[usize]| part.iter().product();
    [extent(&shape[..axis]), shape[axis], extent(&shape[axis + 1..])]
}

/// What reducing no elements gives.
pub(crate) fn identity(kind: ReduceKind, dtype: DType) -> Literal {
    let least = |dtype: DType| match dtype {
        DType::I32 => Literal::from_i64(dtype, i32::MIN as i64),
        DType::I64 => Literal::from_i64(dtype, i64::MIN),
        d if d.is_float() => Literal::from_f64(d, f64::NEG_INFINITY),
        d => Literal::from_i64(d, 0),
    };
    let greatest = |dtype: DType| match dtype {
        DType::I32 => Literal::from_i64(dtype, i32::MAX as i64),
        DType::I64 => Literal::from_i64(dtype, i64::MAX),
        d if d.is_float() => Literal::from_f64(d, f64::INFINITY),
        d => Literal::from_bits(d, if d == DType::Bool { 1 } else { u64::MAX }),
    };
    match kind {
        ReduceKind::Sum | ReduceKind::Any | ReduceKind::ArgMax | ReduceKind::ArgMin => {
            Literal::from_i64(dtype, 0)
        }
        ReduceKind::Prod | ReduceKind::All => Literal::from_i64(dtype, 1),
        ReduceKind::Max => least(dtype),
        ReduceKind::Min => greatest(dtype),
    }
}
