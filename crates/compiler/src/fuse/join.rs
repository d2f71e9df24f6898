//! Joining: whether a node can be computed inside a group that uses it, and how.

use super::group::Operand;
use super::{CHEAP, Fuser, GroupKind, Item, Level, Root};
use crate::form::{
    Axes, Form, Misfit, RunStart, StartSource, broadcast_strides, dense_strides, locate,
};
use crate::graph::{Kind, NodeId};
use vramlab_ir::{Inst, Shape};

/// A group with more computed values than this is not joined any more.
pub(super) const MAX_ITEMS: usize = 256;
/// Nor one that reads in more ways than this.
const MAX_REQUESTS: usize = 512;

/// An operand of a node as its loops meet it: strides along the node's axes.
struct Use {
    input: u32,
    gather: Option<(u32, RunStart)>,
    strides: Vec<isize>,
}

impl Fuser<'_> {
    /// Computes `id` in `group`, for `requests`. `store`: also writes it to its buffer there.
    ///
    /// # Errors
    /// The reason why not; nothing but splits of loop dimensions has changed then.
    pub(super) fn join(
        &mut self,
        id: NodeId,
        group: u32,
        requests: &[u32],
        store: bool,
    ) -> Result<(), String> {
        match &self.graph.node(id).kind {
            Kind::View { .. } | Kind::DynamicSlice => self.join_view(id, group, requests),
            Kind::Map(_) => self.join_map(id, group, requests, store),
            Kind::Barrier => {
                let uses: Vec<(u32, u32)> = requests.iter().map(|&r| (group, r)).collect();
                self.order_after(&self.graph.node(id).inputs[1..], &uses);
                self.forward(id, uses);
                Ok(())
            }
            Kind::Reduce { kind: _, outer, reduced, inner: 1 } => {
                self.join_reduce(id, group, requests, store, *outer, *reduced)
            }
            Kind::Reduce { .. } => Err("a reduction over an outer axis ends its loop".into()),
            Kind::Dot { batch, m, n, k } => {
                self.join_dot(id, group, requests, store, [*batch, *m, *n, *k])
            }
            _ => Err("it is assembled in memory".into()),
        }
    }

    pub(super) fn form(&self, group: u32, request: u32) -> &Form {
        &self.groups[group as usize].requests[request as usize].form
    }

    pub(super) fn distinct(&self, group: u32, requests: &[u32]) -> Vec<u32> {
        let mut kept: Vec<u32> = Vec::with_capacity(1);
        for &request in requests {
            if !kept.iter().any(|&k| self.form(group, k) == self.form(group, request)) {
                kept.push(request);
            }
        }
        kept
    }

    fn join_view(&mut self, id: NodeId, group: u32, requests: &[u32]) -> Result<(), String> {
        let node = self.graph.node(id);
        let input = node.inputs[0];
        let (base, strides, starts) = match &node.kind {
            Kind::View { offset, strides } => (*offset, strides.clone(), Vec::new()),
            _ => {
                let strides = dense_strides(&self.graph.ty(input).shape);
                let (offset, starts) =
                    self.run_starts(input, &node.inputs[1..], &node.ty.shape, &strides);
                (offset, strides, starts)
            }
        };
        let axes = Axes::joined(&node.ty.shape, &[strides]);
        for &request in requests {
            let mut form = self.located(group, request, &axes)?.remove(0);
            form.offset += base;
            form.starts.extend(starts.iter().copied());
            self.force_starts(&form);
            let slot = &mut self.groups[group as usize].requests[request as usize];
            slot.form = form;
            slot.node = input;
            self.pending[input.index()].push((group, request));
        }
        Ok(())
    }

    /// The forms of operands with `axes`' strides, as the request meets them; splits loop
    /// dimensions as needed.
    fn located(&mut self, group: u32, request: u32, axes: &Axes) -> Result<Vec<Form>, String> {
        loop {
            let target = &self.groups[group as usize];
            match locate(&target.requests[request as usize].form, &target.dims, &axes.extents) {
                Ok(location) => {
                    return Ok(axes.strides.iter().map(|s| location.apply(0, s)).collect());
                }
                Err(Misfit::Split { dim, inner })
                    if self.groups[group as usize].split(dim, inner) => {}
                Err(_) => return Err("its broadcast does not follow the loop's dimensions".into()),
            }
        }
    }

    fn join_map(
        &mut self,
        id: NodeId,
        group: u32,
        requests: &[u32],
        store: bool,
    ) -> Result<(), String> {
        let distinct = self.distinct(group, requests);
        self.admissible(id, group, requests, &distinct)?;
        let stored_at = if store { Some(self.storable(id, group, &distinct)?) } else { None };
        let (uses, indices) = self.uses(id);
        let forms = self.operand_forms(id, group, &distinct, &uses, &indices)?;
        for (&request, forms) in distinct.iter().zip(forms) {
            let form = self.form(group, request).clone();
            let answered: Vec<u32> =
                requests.iter().copied().filter(|&r| *self.form(group, r) == form).collect();
            let item = self.map_item(id, group, form, &uses, &indices, forms);
            self.push_item(group, &answered, item);
        }
        if let Some(request) = stored_at {
            let write = self.form(group, request).clone();
            self.groups[group as usize].roots.push(Root { node: id, request, write });
        }
        self.joined[id.index()] |= !self.graph.node(id).inputs.is_empty();
        Ok(())
    }

    /// Whether a map may be computed in the group at all.
    fn admissible(
        &self,
        id: NodeId,
        group: u32,
        requests: &[u32],
        distinct: &[u32],
    ) -> Result<(), String> {
        let target = &self.groups[group as usize];
        if requests.iter().any(|&r| target.requests[r as usize].buffer_only) {
            return Err("a product or a gather reads it from memory".into());
        }
        if target.items.len() >= MAX_ITEMS || target.requests.len() >= MAX_REQUESTS {
            return Err("the loop is full".into());
        }
        if !target.items.is_empty() {
            self.affordable(id, group, distinct)?;
        }
        let Kind::Map(program) = &self.graph.node(id).kind else {
            unreachable!("only maps are asked about")
        };
        let asks = |inst: &Inst| matches!(inst, Inst::Index { .. } | Inst::Position);
        if program.insts.iter().any(asks)
            && distinct.iter().any(|&r| !self.form(group, r).starts.is_empty())
        {
            return Err("its coordinates are known only at run time".into());
        }
        Ok(())
    }

    /// For each distinct request: the forms of the map's uses, then of its indices.
    fn operand_forms(
        &mut self,
        id: NodeId,
        group: u32,
        distinct: &[u32],
        uses: &[Use],
        indices: &[u32],
    ) -> Result<Vec<Vec<Form>>, String> {
        let graph = self.graph;
        let shape = &graph.ty(id).shape;
        let plain = indices.is_empty()
            && uses.iter().all(|u| u.gather.is_none())
            && graph.node(id).inputs.iter().all(|&i| graph.ty(i).shape == *shape);
        if plain {
            let same = |&r: &u32| vec![self.form(group, r).clone(); uses.len()];
            return Ok(distinct.iter().map(same).collect());
        }
        let mut strides: Vec<Vec<isize>> = uses.iter().map(|u| u.strides.clone()).collect();
        strides.extend(indices.iter().map(|&axis| self.unit(id, axis)));
        let axes = Axes::joined(shape, &strides);
        // A later split changes earlier forms, so all is located once more when one happened.
        loop {
            let dims = self.groups[group as usize].dims.len();
            let mut forms = Vec::with_capacity(distinct.len());
            for &request in distinct {
                forms.push(self.located(group, request, &axes)?);
            }
            if self.groups[group as usize].dims.len() == dims {
                return Ok(forms);
            }
        }
    }

    /// A map at one form, with its operands asked for.
    fn map_item(
        &mut self,
        id: NodeId,
        group: u32,
        form: Form,
        uses: &[Use],
        indices: &[u32],
        forms: Vec<Form>,
    ) -> Item {
        let graph = self.graph;
        let mut forms = forms.into_iter();
        let mut operands = Vec::with_capacity(uses.len());
        for (used, mut form) in uses.iter().zip(forms.by_ref()) {
            form.starts.extend(used.gather.map(|(_, start)| start));
            let node = graph.node(id).inputs[used.input as usize];
            let request = self.request(group, node, form, used.gather.is_some());
            operands.push(Operand {
                input: used.input,
                gather: used.gather.map(|(axis, _)| axis),
                request,
            });
        }
        let indices = indices.iter().copied().zip(forms).collect();
        Item { node: id, form, operands, indices }
    }

    /// Strides that give the coordinate along `axis` of `id`.
    fn unit(&self, id: NodeId, axis: u32) -> Vec<isize> {
        (0..self.graph.ty(id).shape.rank()).map(|a| (a == axis as usize) as isize).collect()
    }

    /// The operands that the program reads, and the axes whose coordinates it asks for.
    fn uses(&self, id: NodeId) -> (Vec<Use>, Vec<u32>) {
        let node = self.graph.node(id);
        let Kind::Map(program) = &node.kind else { unreachable!("only maps have programs") };
        let mut uses: Vec<Use> = Vec::with_capacity(node.inputs.len());
        let mut indices: Vec<u32> = Vec::new();
        for inst in &program.insts {
            match *inst {
                Inst::Input { input, .. } => {
                    if uses.iter().any(|u| u.input == input && u.gather.is_none()) {
                        continue;
                    }
                    let operand = &self.graph.ty(node.inputs[input as usize]).shape;
                    let strides = broadcast_strides(operand, &node.ty.shape);
                    uses.push(Use { input, gather: None, strides });
                }
                Inst::Gather { input, axis, .. } => {
                    let seen = |u: &Use| u.input == input && u.gather.is_some_and(|g| g.0 == axis);
                    if uses.iter().any(seen) {
                        continue;
                    }
                    let operand = &self.graph.ty(node.inputs[input as usize]).shape;
                    uses.push(gather_use(input, axis, operand, node.ty.shape.rank()));
                }
                Inst::Index { axis } if !indices.contains(&axis) => indices.push(axis),
                _ => {}
            }
        }
        (uses, indices)
    }

    /// Whether computing `id` inside the group at the given requests costs no more than storing it.
    fn affordable(&self, id: NodeId, group: u32, distinct: &[u32]) -> Result<(), String> {
        let facts = self.facts[id.index()];
        let target = &self.groups[group as usize];
        if distinct.len() > 1 && facts.weight > CHEAP {
            return Err(format!(
                "met at {} places at once, and costs {} to compute: stored",
                distinct.len(),
                facts.weight
            ));
        }
        let mut points = target.points();
        let last = self.form(group, distinct[0]).strides.last();
        if target.kind == GroupKind::Rows && last == Some(&0) {
            points /= target.dims.last().copied().unwrap_or(1);
        }
        let times = points / self.graph.elements(id).max(1);
        if times > 1 && facts.weight > CHEAP / 2 && !self.per_row(id, group, distinct[0]) {
            let limit = self.options.max_kept_row_bytes;
            return Err(match facts.row_extent * 4 > limit {
                true => too_long(facts.row_extent, limit),
                false => format!(
                    "broadcast: would be computed {times} times over, at a cost of {}",
                    facts.weight
                ),
            });
        }
        if self.level == Level::Frugal {
            self.frugal(id, group)?;
        }
        Ok(())
    }

    /// Whether `id` is a function of a row reduction that can run in the group.
    fn per_row(&self, id: NodeId, group: u32, request: u32) -> bool {
        let target = &self.groups[group as usize];
        let extent = self.facts[id.index()].row_extent;
        extent > 0 && self.row_of(group, request, extent) && target.kind != GroupKind::Dot
    }

    /// Whether the request asks for one value a row, in rows of `extent` columns that fit.
    pub(super) fn row_of(&self, group: u32, request: u32, extent: usize) -> bool {
        let target = &self.groups[group as usize];
        target.dims.last() == Some(&extent)
            && self.form(group, request).strides.last() == Some(&0)
            && matches!(target.kind, GroupKind::Map | GroupKind::Rows)
            && extent * 4 <= self.options.max_kept_row_bytes
    }

    /// Refuses to let one loop wait for more than two temporaries.
    pub(super) fn frugal(&self, id: NodeId, group: u32) -> Result<(), String> {
        let target = &self.groups[group as usize];
        let mut temporaries: Vec<NodeId> = target
            .requests
            .iter()
            .filter(|r| r.source == super::Source::Read && r.node != id)
            .map(|r| r.node)
            .chain(self.graph.node(id).inputs.iter().copied())
            .map(|n| self.graph.base(n))
            .filter(|&n| {
                !matches!(self.graph.node(n).kind, Kind::Param(_))
                    && self.graph.literal(n).is_none()
                    && self.graph.elements(n) > 1
            })
            .collect();
        temporaries.sort_unstable();
        temporaries.dedup();
        match temporaries.len() {
            0..=2 => Ok(()),
            n => Err(format!("the loop would hold {n} temporaries at once")),
        }
    }

    /// The request at which the group meets every element of `id` exactly once.
    pub(super) fn storable(
        &mut self,
        id: NodeId,
        group: u32,
        distinct: &[u32],
    ) -> Result<u32, String> {
        let elements = self.graph.elements(id);
        let extent = self.facts[id.index()].row_extent;
        let per_row =
            distinct.iter().copied().find(|&r| extent > 0 && self.row_of(group, r, extent));
        let target = &mut self.groups[group as usize];
        let covers = |r: u32, ignored: usize| {
            target.requests[r as usize].form.covers(&target.dims, ignored, elements)
        };
        match target.kind {
            GroupKind::Map | GroupKind::Rows => {
                if let Some(&request) = distinct.iter().find(|&&r| covers(r, 0)) {
                    return Ok(request);
                }
                if let Some(request) = per_row.filter(|&r| covers(r, 1)) {
                    target.kind = GroupKind::Rows;
                    return Ok(request);
                }
                Err("it is a result, and its users do not walk it once: stored".into())
            }
            GroupKind::Columns => Err("it is a result, and its user reduces it: stored".into()),
            GroupKind::Dot => Err("it is a result, and a product's loop stores one array".into()),
            GroupKind::Conv | GroupKind::Whole => {
                unreachable!("nothing joins a kernel of its own")
            }
        }
    }
}

/// Why a row reduction does not run in the loop that uses it.
pub(super) fn too_long(extent: usize, limit: usize) -> String {
    format!("a row of {extent} elements is longer than the {limit} bytes that are kept")
}

/// An indexed read: axes before the gathered one are the loop's first, those behind it its last.
fn gather_use(input: u32, axis: u32, operand: &Shape, rank: usize) -> Use {
    let weights = dense_strides(operand);
    let mut strides = vec![0; rank];
    for (own, &weight) in weights.iter().enumerate() {
        let along = match own.cmp(&(axis as usize)) {
            std::cmp::Ordering::Less => own,
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Greater => rank - (operand.rank() - own),
        };
        if operand[own] > 1 {
            strides[along] = weight;
        }
    }
    let start = RunStart {
        source: StartSource::Index,
        limit: operand[axis as usize] as i64 - 1,
        stride: weights[axis as usize],
    };
    Use { input, gather: Some((axis, start)), strides }
}
