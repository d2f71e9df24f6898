//! Siblings: loops over the same dimensions that read the same array become one, so that it is read
//! once.

use super::{Fuser, Group, GroupKind, Source};
use crate::graph::{Kind, NodeId};
use std::collections::HashMap;

/// Groups that are looked through for a dependency before siblings are left apart.
const LOOKED_THROUGH: usize = 256;
/// Arrays that one loop may read or store after it was joined with another.
const MAX_ARRAYS: usize = 24;

/// What two siblings have in common.
#[derive(PartialEq, Eq, Hash)]
struct Likeness {
    kind: GroupKind,
    points: usize,
    array: NodeId,
}

impl Fuser<'_> {
    /// Joins each group with an earlier one (a later one of the program) where that is possible.
    pub(super) fn join_siblings(&mut self) {
        if self.groups.len() < 2 {
            return;
        }
        let mut writers: HashMap<NodeId, Vec<u32>> = HashMap::new();
        for (at, group) in self.groups.iter().enumerate() {
            for root in &group.roots {
                writers.entry(root.node).or_default().push(at as u32);
            }
        }
        let mut known: HashMap<Likeness, u32> = HashMap::new();
        for at in 0..self.groups.len() as u32 {
            let likenesses = self.likenesses(at, &writers);
            let known_alike: Vec<u32> =
                likenesses.iter().filter_map(|l| known.get(l).copied()).collect();
            let other = known_alike.into_iter().find(|&other| {
                self.together(other, at)
                    && !self.depends(other, at, &writers)
                    && !self.depends(at, other, &writers)
                    && self.align(other, at)
            });
            match other {
                Some(other) => {
                    for root in &self.groups[at as usize].roots {
                        let by = writers.get_mut(&root.node).expect("entered above");
                        by.iter_mut().filter(|w| **w == at).for_each(|w| *w = other);
                    }
                    self.merge(other, at);
                }
                None => known.extend(likenesses.into_iter().map(|l| (l, at))),
            }
        }
        self.drop_empty();
    }

    /// Leaves out the groups that were joined with others.
    fn drop_empty(&mut self) {
        let mut moved = vec![0; self.groups.len()];
        let mut count = 0;
        for (at, group) in self.groups.iter().enumerate() {
            moved[at] = count;
            count += !group.roots.is_empty() as u32;
        }
        self.groups.retain(|group| !group.roots.is_empty());
        for group in &mut self.groups {
            group.after.iter_mut().for_each(|before| *before = moved[*before as usize]);
        }
    }

    /// Splits dimensions of both groups until they are the same.
    fn align(&mut self, a: u32, b: u32) -> bool {
        for (this, that) in [(a, b), (b, a)] {
            let mut sizes = Vec::new();
            let mut size = 1;
            for &extent in self.groups[this as usize].dims.iter().rev() {
                size *= extent;
                sizes.push(size);
            }
            let other = &mut self.groups[that as usize];
            if !sizes.into_iter().all(|size| other.boundary(size).is_some()) {
                return false;
            }
        }
        self.groups[a as usize].dims == self.groups[b as usize].dims
    }

    /// The large arrays that a group reads, as what a sibling must have in common with it. Parts of
    /// assembled arrays and loops in a fixed order have no siblings.
    fn likenesses(&self, at: u32, writers: &HashMap<NodeId, Vec<u32>>) -> Vec<Likeness> {
        let group = &self.groups[at as usize];
        let apart = matches!(group.kind, GroupKind::Dot | GroupKind::Conv | GroupKind::Whole)
            || !group.after.is_empty()
            || !group.after_nodes.is_empty()
            || group.copies_operand
            || group.roots.iter().any(|r| writers[&r.node].len() > 1 || self.is_part(r.node));
        if apart {
            return Vec::new();
        }
        let points = group.points();
        let mut arrays: Vec<NodeId> = group
            .requests
            .iter()
            .filter(|r| r.source == Source::Read && self.graph.elements(r.node) * 2 > points)
            .map(|r| r.node)
            .collect();
        arrays.sort_unstable();
        arrays.dedup();
        let alike = |array| Likeness { kind: group.kind, points, array };
        arrays.into_iter().map(alike).collect()
    }

    /// Whether a node is assembled by several loops.
    fn is_part(&self, id: NodeId) -> bool {
        matches!(
            self.graph.node(id).kind,
            Kind::Concatenate { .. } | Kind::Pad { .. } | Kind::Update | Kind::Scatter { .. }
        )
    }

    fn together(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.groups[a as usize], &self.groups[b as usize]);
        let mut arrays: Vec<NodeId> = [a, b]
            .into_iter()
            .flat_map(|g| {
                let reads = g.requests.iter().filter(|r| r.source == Source::Read).map(|r| r.node);
                reads.chain(g.roots.iter().map(|r| r.node))
            })
            .collect();
        arrays.sort_unstable();
        arrays.dedup();
        !a.roots.is_empty()
            && arrays.len() <= MAX_ARRAYS
            && a.items.len() + b.items.len() <= super::join::MAX_ITEMS
    }

    /// Whether `user` needs, directly or not, what `maker` stores; `true` also when that would take
    /// too long to find out.
    fn depends(&self, user: u32, maker: u32, writers: &HashMap<NodeId, Vec<u32>>) -> bool {
        let mut seen: Vec<u32> = vec![user];
        let mut next = 0;
        while next < seen.len() {
            if seen.len() > LOOKED_THROUGH {
                return true;
            }
            let group = &self.groups[seen[next] as usize];
            next += 1;
            for array in inputs(group) {
                for &writer in writers.get(&array).map_or(&[][..], Vec::as_slice) {
                    if writer == maker {
                        return true;
                    }
                    if !seen.contains(&writer) {
                        seen.push(writer);
                    }
                }
            }
            for &before in &group.after {
                if before == maker {
                    return true;
                }
                if !seen.contains(&before) {
                    seen.push(before);
                }
            }
        }
        false
    }

    /// Moves everything of group `from` into group `into`.
    fn merge(&mut self, into: u32, from: u32) {
        let order = self.groups[from as usize].order;
        let empty = Group::new(GroupKind::Map, Vec::new(), order);
        let moved = std::mem::replace(&mut self.groups[from as usize], empty);
        let target = &mut self.groups[into as usize];
        let (requests, items) = (target.requests.len() as u32, target.items.len() as u32);
        target.requests.extend(moved.requests.into_iter().map(|mut request| {
            if let Source::Item(item) = &mut request.source {
                *item += items;
            }
            request
        }));
        target.items.extend(moved.items.into_iter().map(|mut item| {
            item.operands.iter_mut().for_each(|operand| operand.request += requests);
            item
        }));
        target.roots.extend(moved.roots.into_iter().map(|mut root| {
            root.request += requests;
            root
        }));
    }
}

/// The arrays that a group needs stored.
fn inputs(group: &Group) -> impl Iterator<Item = NodeId> {
    use crate::form::StartSource;
    let starts = group
        .requests
        .iter()
        .map(|r| &r.form)
        .chain(group.roots.iter().map(|r| &r.write))
        .flat_map(|form| &form.starts)
        .filter_map(|start| match start.source {
            StartSource::Node(node) => Some(node),
            StartSource::Index => None,
        });
    let reads = group.requests.iter().filter(|r| r.source == Source::Read).map(|r| r.node);
    reads.chain(starts).chain(group.after_nodes.iter().copied())
}
