//! Joining reductions and products: what turns a loop over elements into rows or into a product.

use super::join::too_long;
use super::own::dot_forms;
use super::{Fuser, GroupKind, Level, Root};
use crate::form::dense_strides;
use crate::graph::NodeId;

impl Fuser<'_> {
    pub(super) fn join_reduce(
        &mut self,
        id: NodeId,
        group: u32,
        requests: &[u32],
        store: bool,
        outer: usize,
        reduced: usize,
    ) -> Result<(), String> {
        let distinct = self.distinct(group, requests);
        let [request] = distinct[..] else {
            return Err("met at several places of one loop: stored".into());
        };
        let target = &self.groups[group as usize];
        if requests.iter().any(|&r| target.requests[r as usize].buffer_only) {
            return Err("a product or a gather reads it from memory".into());
        }
        if !self.form(group, request).starts.is_empty() {
            return Err("its place is known only at run time".into());
        }
        if self.level == Level::Frugal {
            self.frugal(id, group)?;
        }
        self.enter_rows(group, request, outer, reduced)?;
        let stored_at = if store { Some(self.storable(id, group, &distinct)?) } else { None };
        let form = self.form(group, request).clone();
        let mut operand = form.scaled(reduced as isize);
        *operand.strides.last_mut().expect("rows have columns") = 1;
        self.item(id, group, requests, form.clone(), &[operand], false);
        if let Some(request) = stored_at {
            self.groups[group as usize].roots.push(Root { node: id, request, write: form });
        }
        self.joined[id.index()] = true;
        Ok(())
    }

    /// Makes the group one of rows with `reduced` columns in which the request is one value a row.
    fn enter_rows(
        &mut self,
        group: u32,
        request: u32,
        outer: usize,
        reduced: usize,
    ) -> Result<(), String> {
        let limit = self.options.max_kept_row_bytes;
        if self.row_of(group, request, reduced) {
            let target = &mut self.groups[group as usize];
            let rows: usize = target.dims[..target.dims.len() - 1].iter().product();
            if rows != outer {
                return Err("its rows are not the rows of the loop that uses it".into());
            }
            target.kind = GroupKind::Rows;
            return Ok(());
        }
        let form = self.form(group, request);
        let target = &self.groups[group as usize];
        let walks = target.kind == GroupKind::Map
            && form.covers(&target.dims, 0, outer)
            && target.points() == outer;
        if walks {
            let last = target.dims.len();
            let target = &mut self.groups[group as usize];
            target.insert(last, reduced);
            target.kind = GroupKind::Rows;
            return Ok(());
        }
        if target.dims.last() == Some(&reduced) && reduced * 4 > limit {
            return Err(too_long(reduced, limit));
        }
        Err("the loop that uses it has other rows".into())
    }

    pub(super) fn join_dot(
        &mut self,
        id: NodeId,
        group: u32,
        requests: &[u32],
        store: bool,
        [batch, m, n, k]: [usize; 4],
    ) -> Result<(), String> {
        let [request] = self.distinct(group, requests)[..] else {
            return Err("the product is used at several places of one loop".into());
        };
        let graph = self.graph;
        let target = &self.groups[group as usize];
        let [root] = target.roots.as_slice() else {
            return Err("the loop that uses the product stores several arrays".into());
        };
        let plain = target.kind == GroupKind::Map
            && !store
            && !requests.iter().any(|&r| target.requests[r as usize].buffer_only)
            && graph.ty(root.node).dtype == graph.ty(id).dtype
            && root.write.is_dense(&target.dims)
            && target.points() == graph.elements(root.node)
            && target.points() == batch * m * n
            && target.requests[request as usize].form.is_dense(&target.dims);
        if !plain {
            return Err("its user does not walk the product in order".into());
        }
        let batches = self.groups[group as usize]
            .enter_product(m, n, k)
            .ok_or("the loop's dimensions are not rows and columns of the product")?;
        let target = &self.groups[group as usize];
        let front = dense_strides(&target.dims[..batches]);
        let mut forms = dot_forms(n, k);
        for (form, size) in forms.iter_mut().zip([m * k, k * n, m * n]) {
            let batches = front.iter().map(|&s| s * size as isize);
            form.strides.splice(0..0, batches);
        }
        let [lhs, rhs, product] = forms;
        for &request in requests {
            self.groups[group as usize].requests[request as usize].form = product.clone();
        }
        self.item(id, group, requests, product, &[lhs, rhs], true);
        self.joined[id.index()] = true;
        Ok(())
    }
}
