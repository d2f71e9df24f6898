//! A group: the loops that one kernel runs, before they are written out.

use crate::form::Form;
use crate::graph::NodeId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GroupKind {
    /// One pass over all elements.
    Map,
    /// Rows with reductions over their columns: the last dimension is the columns.
    Rows,
    /// A reduction over a dimension that is not the fastest: the last dimensions are the reduced
    /// one and the columns.
    Columns,
    /// A product: the last dimensions are m, n and k.
    Dot,
    /// A convolution: dimensions are those of the result, of the operand and of the filters, as many each.
    Conv,
    /// A node that is a kernel by itself, over whole arrays: requests and roots only name these.
    Whole,
}

/// A use of a node's value in a group, at a form over the group's dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub node: NodeId,
    pub form: Form,
    pub source: Source,
    /// Only a stored array will do: an operand of a product, or of a gather.
    pub buffer_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Read from the node's buffer.
    Read,
    /// Computed in the group, by this item.
    Item(u32),
}

/// A node computed in a group at one form. Items stand after their users.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub node: NodeId,
    pub form: Form,
    pub operands: Vec<Operand>,
    /// For each loop axis that the node's program asks the coordinate of: the coordinate, as a form.
    pub indices: Vec<(u32, Form)>,
}

/// Which request feeds input `input` of an item; `gather` is the axis of an indexed read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub input: u32,
    pub gather: Option<u32>,
    pub request: u32,
}

/// A value that the group stores in `node`'s buffer.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub node: NodeId,
    pub request: u32,
    pub write: Form,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub kind: GroupKind,
    pub dims: Vec<usize>,
    pub requests: Vec<Request>,
    pub items: Vec<Item>,
    pub roots: Vec<Root>,
    /// Groups that must have run before: the fill before the copy of a pad.
    pub after: Vec<u32>,
    /// Nodes that must have been stored before.
    pub after_nodes: Vec<NodeId>,
    /// The group only copies the operand of an update into place: it vanishes when the update can
    /// work in the operand's buffer.
    pub copies_operand: bool,
    /// The other roots' key for the program's own order.
    pub order: NodeId,
}

impl Group {
    pub fn new(kind: GroupKind, dims: Vec<usize>, order: NodeId) -> Group {
        Group {
            kind,
            dims,
            requests: Vec::new(),
            items: Vec::new(),
            roots: Vec::new(),
            after: Vec::new(),
            after_nodes: Vec::new(),
            copies_operand: false,
            order,
        }
    }

    /// How many of the last dimensions have a fixed role and cannot be split.
    fn fixed(&self) -> usize {
        match self.kind {
            GroupKind::Map | GroupKind::Whole => 0,
            GroupKind::Rows => 1,
            GroupKind::Columns => 2,
            GroupKind::Dot => 3,
            GroupKind::Conv => self.dims.len(),
        }
    }

    /// How many of the last dimensions a stored value does not move along.
    pub fn ignored(&self) -> usize {
        match self.kind {
            GroupKind::Dot => 1,
            GroupKind::Conv => self.dims.len() / 3 * 2,
            _ => 0,
        }
    }

    /// How often an item is evaluated.
    pub fn points(&self) -> usize {
        self.dims[..self.dims.len() - self.ignored()].iter().product()
    }

    fn forms(&mut self) -> impl Iterator<Item = &mut Form> {
        let requests = self.requests.iter_mut().map(|r| &mut r.form);
        let items = self
            .items
            .iter_mut()
            .flat_map(|i| std::iter::once(&mut i.form).chain(i.indices.iter_mut().map(|(_, f)| f)));
        let roots = self.roots.iter_mut().map(|r| &mut r.write);
        requests.chain(items).chain(roots)
    }

    /// Splits loop dimension `dim`; `false` when its role forbids it.
    pub fn split(&mut self, dim: usize, inner: usize) -> bool {
        let full = self.dims.len() >= MAX_DIMS && !self.items.is_empty();
        if full || dim + self.fixed() >= self.dims.len() {
            return false;
        }
        self.dims[dim] /= inner;
        self.dims.insert(dim + 1, inner);
        self.forms().for_each(|form| form.split(dim, inner));
        true
    }

    /// Inserts a loop dimension along which nothing moves yet.
    pub fn insert(&mut self, dim: usize, extent: usize) {
        self.dims.insert(dim, extent);
        self.forms().for_each(|form| form.strides.insert(dim, 0));
    }

    /// Makes the dimensions behind some position hold exactly `size` points; that position.
    pub fn boundary(&mut self, size: usize) -> Option<usize> {
        let mut inner = 1;
        let mut dim = self.dims.len();
        while inner < size {
            dim = dim.checked_sub(1)?;
            let extent = self.dims[dim];
            if inner * extent <= size {
                inner *= extent;
                continue;
            }
            let part = size / inner;
            let splits = size.is_multiple_of(inner) && extent.is_multiple_of(part);
            return (splits && self.split(dim, part)).then_some(dim + 1);
        }
        (inner == size).then_some(dim)
    }

    /// Makes a loop over elements that of a product `m` by `n` with `k` terms each, when its
    /// dimensions allow that; the number of batch dimensions before m. Splits may remain when not.
    pub fn enter_product(&mut self, m: usize, n: usize, k: usize) -> Option<usize> {
        self.boundary(n)?;
        let rows = self.boundary(m * n)?;
        let columns = self.boundary(n)?;
        if self.dims.len() - columns > 1 || columns - rows > 1 {
            return None;
        }
        if columns == self.dims.len() {
            self.insert(columns, 1);
        }
        if columns == rows {
            self.insert(rows, 1);
        }
        self.insert(self.dims.len(), k);
        self.kind = GroupKind::Dot;
        Some(rows)
    }

    /// Moves the last dimension but one behind the last: for maps only, whose order is free.
    pub fn swap_last(&mut self) {
        let last = self.dims.len() - 1;
        self.dims.swap(last - 1, last);
        self.forms().for_each(|form| form.strides.swap(last - 1, last));
    }
}

/// Loops are not made deeper than this to let another value join them. What a loop is for may need
/// more: it has as many as its own axes ask for.
const MAX_DIMS: usize = 12;
