//! Writing groups out as kernel images.

mod columns;
mod conv;
mod dot;
mod rows;
mod scalar;
mod whole;

use crate::Options;
use crate::form::{Form, StartSource};
use crate::fuse::{Group, GroupKind, Source};
use crate::graph::{Graph, Kind, NodeId};
use scalar::Insts;
use vramlab_ir::kernel::{Access, Body, LoopInst, Start};
use vramlab_ir::{Inst, Kernel, Reg};

/// A kernel, and what the passes behind need to know of the group it came from.
#[derive(Debug)]
pub(crate) struct Draft {
    pub kernel: Kernel,
    /// Slots read and written (each once).
    pub reads: Vec<u32>,
    pub writes: Vec<u32>,
    /// Indices of drafts, and slots, that must come before.
    pub after: Vec<u32>,
    pub after_slots: Vec<u32>,
    /// It only copies this slot into the buffer of an update.
    pub copies: Option<u32>,
    /// (slot written, slot read): the write may take over the read's bytes, as far as this kernel's
    /// order of access goes.
    pub in_place: Vec<(u32, u32)>,
    pub order: NodeId,
    /// Nodes computed in it, in program order, for explanations.
    pub nodes: Vec<NodeId>,
}

/// Writes one group out; `slots` gives the slot of every stored node.
pub(crate) fn draft(graph: &Graph, group: &mut Group, slots: &[u32], options: &Options) -> Draft {
    match group.kind {
        GroupKind::Map => order_dims(group),
        GroupKind::Rows | GroupKind::Columns => turn_reduction(graph, group),
        GroupKind::Dot | GroupKind::Conv => {}
        GroupKind::Whole => return whole::draft(graph, group, slots),
    }
    let mut emitter = Emitter::new(graph, group, slots);
    let body = match group.kind {
        GroupKind::Map | GroupKind::Rows => Body::Rows(rows::emit(&mut emitter, options)),
        GroupKind::Columns => Body::Columns(columns::emit(&mut emitter)),
        GroupKind::Dot => Body::Dot(dot::emit(&mut emitter)),
        GroupKind::Conv => Body::Conv(conv::emit(&mut emitter)),
        GroupKind::Whole => unreachable!("drafted above"),
    };
    emitter.finish(body)
}

/// Rows of so few columns are walked the other way. A device works on several short rows at once, so
/// longer ones gain nothing by it (measured: 3 columns 20 % faster, 8 columns 30 % slower).
const FEW: usize = 4;

/// Rows of a few columns cost more in bookkeeping than in work: a long dimension goes last, in
/// blocks short enough that the cache lines which neighbouring passes share stay near.
fn order_dims(group: &mut Group) {
    let rank = group.dims.len();
    if rank < 2 {
        return;
    }
    let (before, last) = (group.dims[rank - 2], group.dims[rank - 1]);
    if last > FEW || before < 4 * last {
        return;
    }
    let block = (256..=2048).rev().find(|&b| before > b && before.is_multiple_of(b));
    if before > 2048
        && let Some(block) = block
    {
        group.split(rank - 2, block);
    }
    group.swap_last();
}

/// A loop that only reduces may do so along rows or across them: across when there are many rows of
/// a few columns, else the way in which what it reads lies dense in memory.
fn turn_reduction(graph: &Graph, group: &mut Group) {
    let [.., before, last] = group.dims[..] else { return };
    let (mut along, mut across) = (0, 0);
    for request in group.requests.iter().filter(|r| r.source == Source::Read) {
        let [.., outer, inner] = request.form.strides[..] else { return };
        along += (inner.abs() == 1) as usize;
        across += (outer.abs() == 1 && inner.abs() > 1) as usize;
    }
    let turned = across > 0 && along == 0;
    let short = last <= FEW && before >= 4 * last;
    match group.kind {
        GroupKind::Rows if (turned || short) && only_reduces(graph, group) => {
            group.swap_last();
            group.kind = GroupKind::Columns;
        }
        GroupKind::Columns if turned && before > FEW => {
            group.swap_last();
            group.kind = GroupKind::Rows;
        }
        _ => {}
    }
}

/// Whether a group of rows stores its reductions and does nothing else with them.
fn only_reduces(graph: &Graph, group: &Group) -> bool {
    let reduction = |request: u32| match group.requests[request as usize].source {
        Source::Item(item) => {
            let node = group.items[item as usize].node;
            matches!(graph.node(node).kind, Kind::Reduce { .. })
        }
        Source::Read => false,
    };
    group.roots.iter().all(|root| reduction(root.request))
        && !group.items.iter().flat_map(|i| &i.operands).any(|operand| reduction(operand.request))
}

/// The state of one group's writing: its buffers, reads and writes.
pub(crate) struct Emitter<'a> {
    pub graph: &'a Graph,
    pub group: &'a Group,
    slots: &'a [u32],
    buffers: Vec<u32>,
    pub reads: Vec<Access>,
    bytes_read: u64,
    bytes_written: u64,
    pub flops: u64,
    read_slots: Vec<u32>,
    write_slots: Vec<u32>,
}

impl<'a> Emitter<'a> {
    fn new(graph: &'a Graph, group: &'a Group, slots: &'a [u32]) -> Emitter<'a> {
        Emitter {
            graph,
            group,
            slots,
            buffers: Vec::with_capacity(4),
            reads: Vec::with_capacity(group.requests.len()),
            bytes_read: 0,
            bytes_written: 0,
            flops: 0,
            read_slots: Vec::new(),
            write_slots: Vec::new(),
        }
    }

    fn buffer(&mut self, slot: u32) -> u32 {
        match self.buffers.iter().position(|&s| s == slot) {
            Some(at) => at as u32,
            None => {
                self.buffers.push(slot);
                self.buffers.len() as u32 - 1
            }
        }
    }

    fn read_buffer(&mut self, node: NodeId, most: u64) -> u32 {
        let slot = self.slots[node.index()];
        if !self.read_slots.contains(&slot) {
            self.read_slots.push(slot);
            self.bytes_read += self.graph.ty(node).bytes().min(most);
        }
        self.buffer(slot)
    }

    /// Where a form of `node` reads or writes, with the strides of the loop dimensions that `keep`
    /// picks.
    fn access(&mut self, node: NodeId, buffer: u32, form: &Form) -> Access {
        let starts = form
            .starts
            .iter()
            .filter_map(|start| match start.source {
                StartSource::Node(scalar) => {
                    let buffer = self.read_buffer(scalar, u64::MAX);
                    Some(Start { buffer, limit: start.limit, stride: start.stride })
                }
                StartSource::Index => None,
            })
            .collect();
        Access {
            buffer,
            dtype: self.graph.ty(node).dtype,
            offset: form.offset,
            strides: form.strides.clone(),
            starts,
        }
    }

    /// The index of the read for a request, made when it is new.
    pub fn read(&mut self, request: u32) -> u32 {
        let access = self.read_access(request);
        match self.reads.iter().position(|a| *a == access) {
            Some(at) => at as u32,
            None => {
                self.reads.push(access);
                self.reads.len() as u32 - 1
            }
        }
    }

    pub fn read_access(&mut self, request: u32) -> Access {
        let group = self.group;
        let request = &group.requests[request as usize];
        // Of a window that moves only the window is read.
        let most = match request.form.starts.is_empty() {
            true => u64::MAX,
            false => group.points() as u64 * self.graph.ty(request.node).dtype.size() as u64,
        };
        let buffer = self.read_buffer(request.node, most);
        self.access(request.node, buffer, &request.form)
    }

    /// The write of root `root`.
    pub fn write(&mut self, root: usize) -> Access {
        let group = self.group;
        let root = &group.roots[root];
        let slot = self.slots[root.node.index()];
        self.write_slots.push(slot);
        // A loop may write a part of an array (one operand of a concatenation), or less often than it runs (a
        // reduction), and more than its operand has (a broadcast).
        let whole = self.graph.ty(root.node);
        let written = group.points() as u64 * whole.dtype.size() as u64;
        self.bytes_written += written.min(whole.bytes());
        let buffer = self.buffer(slot);
        self.access(root.node, buffer, &root.write)
    }

    /// The register of a request in a stage that has every item before it in `registers`.
    pub fn value(&mut self, request: u32, insts: &mut Insts, registers: &[Option<Reg>]) -> Reg {
        let group = self.group;
        match group.requests[request as usize].source {
            Source::Item(item) => {
                registers[item as usize].expect("items are written after their operands")
            }
            Source::Read => {
                let dtype = self.graph.ty(group.requests[request as usize].node).dtype;
                let input = self.read(request);
                insts.push(LoopInst::Scalar(Inst::Input { input, dtype }))
            }
        }
    }

    fn finish(self, body: Body) -> Draft {
        let group = self.group;
        let mut nodes: Vec<NodeId> = group.items.iter().map(|item| item.node).collect();
        nodes.extend(group.roots.iter().map(|root| root.node));
        nodes.sort_unstable();
        nodes.dedup();
        let slot = |node: &NodeId| self.slots[node.index()];
        let copies = group
            .copies_operand
            .then(|| group.requests[0].node)
            .filter(|_| group.items.is_empty() && group.requests[0].form == group.roots[0].write);
        let mut write_slots = self.write_slots;
        write_slots.dedup();
        Draft {
            in_place: crate::plan::in_place(&body, &self.buffers, &write_slots, &self.read_slots),
            reads: self.read_slots,
            writes: write_slots,
            after: group.after.clone(),
            after_slots: group.after_nodes.iter().map(slot).collect(),
            copies: copies.as_ref().map(slot),
            order: group.order,
            kernel: Kernel {
                name: name(self.graph, &nodes),
                buffers: self.buffers,
                body,
                bytes_read: self.bytes_read,
                bytes_written: self.bytes_written,
                flops: self.flops,
            },
            nodes,
        }
    }
}

/// The ops of a kernel joined: `exp_sub_max`; constants only when there is nothing else.
fn name(graph: &Graph, nodes: &[NodeId]) -> String {
    const SHOWN: usize = 6;
    let counts = |id: &&NodeId| !graph.node(**id).inputs.is_empty();
    let total = nodes.iter().filter(counts).count();
    if total == 0 {
        return nodes.last().map_or("copy", |&id| graph.node(id).op).to_string();
    }
    let mut name = String::with_capacity(32);
    for &id in nodes.iter().filter(counts).take(SHOWN) {
        if !name.is_empty() {
            name.push('_');
        }
        name.push_str(graph.node(id).op);
    }
    if total > SHOWN {
        name.push_str(&format!("_and_{}_more", total - SHOWN));
    }
    name
}
