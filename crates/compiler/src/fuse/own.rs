//! Groups of their own: how a stored node is computed.

use super::{Fuser, Group, GroupKind, Item, Request, Root, Source};
use crate::form::{Axes, Form, RunStart, StartSource, dense_strides};
use crate::fuse::group::Operand;
use crate::graph::{Kind, NodeId};

impl Fuser<'_> {
    /// Stores `id`: its uses read the buffer, and a group (or several) of its own fills it.
    pub(super) fn store(&mut self, id: NodeId) {
        self.stored[id.index()] = true;
        match &self.graph.node(id).kind {
            Kind::Map(_) | Kind::View { .. } | Kind::DynamicSlice | Kind::Barrier => {
                self.own_map(id)
            }
            Kind::Reduce { outer, reduced, inner, .. } => {
                self.own_reduce(id, *outer, *reduced, *inner)
            }
            Kind::Dot { batch, m, n, k } => self.own_dot(id, *batch, *m, *n, *k),
            Kind::Conv(_) => self.own_conv(id),
            Kind::Concatenate { axis } => self.own_concatenate(id, *axis),
            Kind::Pad { low } => self.own_pad(id, low),
            Kind::Update => self.own_update(id),
            Kind::Cumulative { .. } => {
                self.whole(id, &self.graph.node(id).inputs[..1], &[id]);
            }
            Kind::Scatter { .. } => self.own_scatter(id),
            Kind::Transfer(transfer) => self.own_transfer(id, transfer.reads()),
            Kind::Param(_) | Kind::Empty | Kind::Reshape | Kind::Output(_) | Kind::Scratch => {}
            Kind::Region(_) => unreachable!("a region has no value to store"),
        }
    }

    fn group(&mut self, kind: GroupKind, dims: Vec<usize>, order: NodeId) -> u32 {
        self.groups.push(Group::new(kind, dims, order));
        self.groups.len() as u32 - 1
    }

    /// One loop dimension over all elements, or none for a scalar.
    fn flat(&self, id: NodeId) -> Vec<usize> {
        match self.graph.elements(id) {
            1 => Vec::new(),
            n => vec![n],
        }
    }

    fn own_map(&mut self, id: NodeId) {
        let dims = self.flat(id);
        let form = Form::dense(&dims);
        let group = self.group(GroupKind::Map, dims, id);
        let request = self.request(group, id, form.clone(), false);
        self.pending[id.index()].clear();
        self.groups[group as usize].roots.push(Root { node: id, request, write: form });
        let joined = self.join(id, group, &[request], false);
        assert!(joined.is_ok(), "{id} does not fit its own loop: {joined:?}");
        self.joined[id.index()] = false;
    }

    fn own_reduce(&mut self, id: NodeId, outer: usize, reduced: usize, inner: usize) {
        let kind = if inner == 1 { GroupKind::Rows } else { GroupKind::Columns };
        let mut dims = vec![reduced];
        let mut write = vec![0];
        if outer > 1 {
            dims.insert(0, outer);
            write.insert(0, inner as isize);
        }
        if inner > 1 {
            dims.push(inner);
            write.push(1);
        }
        let operand = Form::dense(&dims);
        let write = Form { offset: 0, strides: write, starts: Vec::new() };
        let group = self.group(kind, dims, id);
        self.own_item(id, group, write, &[operand], false);
    }

    fn own_dot(&mut self, id: NodeId, batch: usize, m: usize, n: usize, k: usize) {
        let mut dims = vec![m, n, k];
        let mut forms = dot_forms(n, k);
        if batch > 1 {
            dims.insert(0, batch);
            for (form, size) in forms.iter_mut().zip([m * k, k * n, m * n]) {
                form.strides.insert(0, size as isize);
            }
        }
        let [lhs, rhs, write] = forms;
        let group = self.group(GroupKind::Dot, dims, id);
        self.own_item(id, group, write, &[lhs, rhs], true);
    }

    /// Loop dimensions are the axes of the result, of the operand and of the filters, each array moving
    /// along its own: which elements meet is the kernel's business, where they lie is seen from here.
    fn own_conv(&mut self, id: NodeId) {
        let graph = self.graph;
        let [x, w] = [0, 1].map(|input| graph.ty(graph.node(id).inputs[input]).shape.to_vec());
        let all = [graph.ty(id).shape.to_vec(), x, w];
        let forms: Vec<Form> = (0..all.len())
            .map(|own| {
                let strides = all.iter().enumerate().flat_map(|(at, dims)| match at == own {
                    true => dense_strides(dims),
                    false => vec![0; dims.len()],
                });
                Form { offset: 0, strides: strides.collect(), starts: Vec::new() }
            })
            .collect();
        let group = self.group(GroupKind::Conv, all.concat(), id);
        self.own_item(id, group, forms[0].clone(), &forms[1..], true);
    }

    /// A group whose root is the one item `id` itself.
    fn own_item(
        &mut self,
        id: NodeId,
        group: u32,
        write: Form,
        operands: &[Form],
        buffer_only: bool,
    ) {
        let request = self.request(group, id, write.clone(), false);
        self.pending[id.index()].clear();
        self.groups[group as usize].roots.push(Root { node: id, request, write: write.clone() });
        self.item(id, group, &[request], write, operands, buffer_only);
    }

    /// Adds the item `id` at `form` to a group; `requests` are answered by it.
    pub(super) fn item(
        &mut self,
        id: NodeId,
        group: u32,
        requests: &[u32],
        form: Form,
        operands: &[Form],
        buffer_only: bool,
    ) {
        let inputs = &self.graph.node(id).inputs;
        let operands = inputs
            .iter()
            .zip(operands)
            .enumerate()
            .map(|(input, (&node, form))| Operand {
                input: input as u32,
                gather: None,
                request: self.request(group, node, form.clone(), buffer_only),
            })
            .collect();
        self.push_item(group, requests, Item { node: id, form, operands, indices: Vec::new() });
    }

    pub(super) fn push_item(&mut self, group: u32, requests: &[u32], item: Item) {
        let group = &mut self.groups[group as usize];
        let index = group.items.len() as u32;
        group.items.push(item);
        for &request in requests {
            group.requests[request as usize].source = super::Source::Item(index);
        }
    }

    /// A loop that writes `part` into a region of `id`'s buffer: `offset` and `strides` along the
    /// part's axes.
    fn part(&mut self, id: NodeId, part: NodeId, mut write: Form) -> u32 {
        let shape = self.graph.ty(part).shape.clone();
        let axes = Axes::joined(&shape, &[write.strides.clone(), dense_strides(&shape)]);
        let [strides, dense]: [Vec<isize>; 2] =
            axes.strides.try_into().expect("as many as were given");
        write.strides = strides;
        let read = Form { offset: 0, strides: dense, starts: Vec::new() };
        self.force_starts(&write);
        let group = self.group(GroupKind::Map, axes.extents, id);
        let request = self.request(group, part, read, false);
        self.groups[group as usize].roots.push(Root { node: id, request, write });
        group
    }

    fn own_concatenate(&mut self, id: NodeId, axis: usize) {
        let graph = self.graph;
        let weights = dense_strides(&graph.ty(id).shape);
        let mut start = 0;
        for &input in &graph.node(id).inputs {
            let offset = start as isize * weights[axis];
            self.part(id, input, Form { offset, strides: weights.clone(), starts: Vec::new() });
            start += graph.ty(input).shape[axis];
        }
    }

    fn own_pad(&mut self, id: NodeId, low: &[usize]) {
        let graph = self.graph;
        let dims = self.flat(id);
        let write = Form::dense(&dims);
        let rank = dims.len();
        let fill = self.group(GroupKind::Map, dims, id);
        let padding = graph.node(id).inputs[1];
        let request = self.request(fill, padding, Form::constant(rank), false);
        self.groups[fill as usize].roots.push(Root { node: id, request, write });
        let strides = dense_strides(&graph.ty(id).shape);
        let offset = low.iter().zip(&strides).map(|(&l, s)| l as isize * s).sum();
        let write = Form { offset, strides, starts: Vec::new() };
        let copy = self.part(id, graph.node(id).inputs[0], write);
        self.groups[copy as usize].after.push(fill);
    }

    /// A loop that copies input 0 of an update to where it is updated.
    fn operand_copy(&mut self, id: NodeId) -> u32 {
        let dims = self.flat(id);
        let form = Form::dense(&dims);
        let copy = self.group(GroupKind::Map, dims, id);
        let request = self.request(copy, self.graph.node(id).inputs[0], form.clone(), false);
        let group = &mut self.groups[copy as usize];
        group.roots.push(Root { node: id, request, write: form });
        group.copies_operand = true;
        copy
    }

    fn own_scatter(&mut self, id: NodeId) {
        let copy = self.operand_copy(id);
        let scatter = self.whole(id, &self.graph.node(id).inputs[1..], &[id]);
        self.groups[scatter as usize].after.push(copy);
    }

    /// A copy between memories: no kernel, so nothing is ever computed along with it.
    fn own_transfer(&mut self, id: NodeId, reads: usize) {
        let transfer = self.whole(id, &self.graph.node(id).inputs[..reads], &[id]);
        // A constant is there from the beginning: to wait for it would only store it.
        let waits = |before: &&NodeId| self.graph.literal(**before).is_none();
        let before: Vec<NodeId> =
            self.graph.node(id).inputs[reads..].iter().filter(waits).copied().collect();
        self.order_after(&before, &[(transfer, 0)]);
    }

    /// A loop or a branch, once one of its results is asked for.
    pub(super) fn own_region(&mut self, id: NodeId, region: u32) {
        let Some(image) = &self.graph.images[region as usize] else { return };
        if image.writes.iter().any(|written| self.stored[written.index()]) {
            self.whole(id, &image.reads, &image.writes);
        }
    }

    /// A group for a node that is a kernel by itself: what it reads and writes is stored.
    fn whole(&mut self, id: NodeId, reads: &[NodeId], writes: &[NodeId]) -> u32 {
        let group = self.group(GroupKind::Whole, Vec::new(), id);
        for &written in writes {
            self.stored[written.index()] = true;
            let root = Root { node: written, request: 0, write: Form::default() };
            self.groups[group as usize].roots.push(root);
        }
        for &read in reads {
            let node = self.graph.base(read);
            self.apart[node.index()] = true;
            self.groups[group as usize].requests.push(Request {
                node,
                form: Form::default(),
                source: Source::Read,
                buffer_only: true,
            });
        }
        group
    }

    fn own_update(&mut self, id: NodeId) {
        let graph = self.graph;
        let copy = self.operand_copy(id);
        let inputs = &graph.node(id).inputs;
        let strides = dense_strides(&graph.ty(id).shape);
        let (offset, starts) =
            self.run_starts(id, &inputs[2..], &graph.ty(inputs[1]).shape, &strides);
        let update = self.part(id, inputs[1], Form { offset, strides, starts });
        self.groups[update as usize].after.push(copy);
    }

    /// The starts of a window of extents `window` in an array: the offset of those that are
    /// constants, and the others.
    pub(super) fn run_starts(
        &self,
        array: NodeId,
        scalars: &[NodeId],
        window: &[usize],
        strides: &[isize],
    ) -> (isize, Vec<RunStart>) {
        let shape = &self.graph.ty(array).shape;
        let (mut offset, mut starts) = (0, Vec::new());
        for axis in (0..shape.rank()).filter(|&axis| shape[axis] > window[axis]) {
            let limit = (shape[axis] - window[axis]) as i64;
            match self.graph.literal(scalars[axis]) {
                Some(start) => offset += start.as_i64().clamp(0, limit) as isize * strides[axis],
                None => starts.push(RunStart {
                    source: StartSource::Node(self.graph.base(scalars[axis])),
                    limit,
                    stride: strides[axis],
                }),
            }
        }
        (offset, starts)
    }
}

/// The forms of both operands and of the product over (m, n, k).
pub(super) fn dot_forms(n: usize, k: usize) -> [Form; 3] {
    let form = |strides: [usize; 3]| Form {
        offset: 0,
        strides: strides.iter().map(|&s| s as isize).collect(),
        starts: Vec::new(),
    };
    [form([k, 0, 1]), form([0, 1, n]), form([n, 1, 0])]
}
