//! The machine that a pickle is written for, as far as a snapshot needs it.
//!
//! Values are made small as soon as they are whole: a frame, a stack, a block, a segment become numbers when they enter
//! the list that holds them, an event goes out as a record, and what no report needs is dropped. What remains on the way
//! is the stack of the machine, and that is bounded: Python writes a thousand items at once.

use crate::open::Failed;
use crate::owners::{Frame, Owners};
use crate::pickle::{Fetched, Instructions, Op, Stop};
use crate::reading::Reading;
use crate::record::{Kind, Record};
use crate::spool::SpoolWriter;
use std::ops::Range;
use vramlab_memory::names::Named;
use vramlab_memory::trace::pickle::PickleError;
use vramlab_memory::trace::torch::{TorchBlock, TorchSegment};

/// Values on the stack, values kept, and containers that are not yet whole: above this a file is no snapshot.
const MOST: usize = 4 << 20;
/// Bytes of text that wait on the stack.
const MOST_WAITING: usize = 64 << 20;
/// Bytes of distinct texts that are kept.
const MOST_TEXT: usize = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    /// Nothing that a report needs.
    Blank,
    Int(i64),
    Big(u64),
    /// A text in the arena.
    Waiting {
        start: u32,
        length: u32,
    },
    /// A text that is kept.
    Text(u32),
    Node(u32),
    Frame(u32),
    /// A whole list of frames.
    Stack(u32),
    Block(u32),
    Segment(u32),
}

#[derive(Debug, Default)]
enum Node {
    #[default]
    Vacant,
    Dict(Vec<(Key, Item)>),
    List(List),
}

#[derive(Debug, Default)]
struct List {
    items: Vec<Item>,
    /// Which events it held.
    events: Option<Range<u64>>,
}

/// The keys whose values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Action,
    Addr,
    Size,
    Stream,
    TimeUs,
    Frames,
    Address,
    RequestedSize,
    State,
    Blocks,
    TotalSize,
    SegmentType,
    IsExpandable,
    Device,
    DeviceFree,
    Filename,
    Line,
    Name,
    Segments,
    DeviceTraces,
    Settings,
    Conf,
    /// Any other.
    Other,
}

const KEYS: [(&str, Key); 24] = [
    ("action", Key::Action),
    ("addr", Key::Addr),
    ("size", Key::Size),
    ("stream", Key::Stream),
    ("time_us", Key::TimeUs),
    ("frames", Key::Frames),
    ("address", Key::Address),
    ("requested_size", Key::RequestedSize),
    ("state", Key::State),
    ("blocks", Key::Blocks),
    ("total_size", Key::TotalSize),
    ("segment_type", Key::SegmentType),
    ("is_expandable", Key::IsExpandable),
    ("device", Key::Device),
    ("device_free", Key::DeviceFree),
    ("filename", Key::Filename),
    ("line", Key::Line),
    ("name", Key::Name),
    ("segments", Key::Segments),
    ("device_traces", Key::DeviceTraces),
    ("allocator_settings", Key::Settings),
    ("PYTORCH_CUDA_ALLOC_CONF", Key::Conf),
    ("PYTORCH_ALLOC_CONF", Key::Conf),
    ("PYTORCH_HIP_ALLOC_CONF", Key::Conf),
];

/// What a snapshot holds.
pub(crate) struct Contents {
    /// The segments at the end: device, segment, and who made each of its blocks.
    pub(crate) segments: Vec<(u64, TorchSegment, Vec<u32>)>,
    /// The devices that have events, and where those lie in the spool.
    pub(crate) devices: Vec<(u64, Range<u64>)>,
    pub(crate) conf: String,
    pub(crate) spool: SpoolWriter,
    pub(crate) owners: Owners,
    /// Whether the file breaks off.
    pub(crate) cut: bool,
    pub(crate) notes: Vec<String>,
}

/// Reads a snapshot.
pub(crate) struct Machine {
    instructions: Instructions,
    fetched: Fetched,
    stack: Vec<Item>,
    marks: Vec<usize>,
    arena: Vec<u8>,
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    /// Which nodes the pickle uses again, and under which number.
    shared: Named<u32, u32>,
    memo: Named<u32, Item>,
    kept: u32,
    keys: Vec<Option<Key>>,
    streams: Named<u64, u32>,
    blocks: Vec<(TorchBlock, bool, u32)>,
    segments: Vec<(u64, TorchSegment, Vec<u32>)>,
    spool: SpoolWriter,
    owners: Owners,
    text_bytes: usize,
    /// The stack that is being made.
    frames: Vec<u32>,
    unreadable: u64,
}

type Step = Result<(), Stop>;

impl Machine {
    pub(crate) fn new(reading: Reading, fetched: Fetched) -> Machine {
        Machine {
            instructions: Instructions::new(reading),
            fetched,
            stack: Vec::new(),
            marks: Vec::new(),
            arena: Vec::new(),
            nodes: Vec::new(),
            vacant: Vec::new(),
            shared: Named::default(),
            memo: Named::default(),
            kept: 0,
            keys: Vec::new(),
            streams: Named::default(),
            blocks: Vec::new(),
            segments: Vec::new(),
            spool: SpoolWriter::default(),
            owners: Owners::default(),
            text_bytes: 0,
            frames: Vec::new(),
            unreadable: 0,
        }
    }

    /// Reads to the end, or to where the file breaks off.
    pub(crate) fn run(mut self) -> Result<Contents, Failed> {
        loop {
            let op = match self.instructions.next(Some(&mut self.arena)) {
                Ok(Op::Stop) => return self.whole(),
                Ok(op) => self.step(op),
                Err(stop) => Err(stop),
            };
            match op {
                Ok(()) => {}
                Err(Stop::Io(error)) => return Err(Failed::Io(error)),
                Err(Stop::Pickle(error @ PickleError::Truncated { .. })) => return self.cut(error),
                Err(Stop::Pickle(error)) => {
                    return Err(Failed::Damaged { what: error.to_string() });
                }
            }
        }
    }

    fn step(&mut self, op: Op) -> Step {
        match op {
            Op::Stop | Op::Nothing => Ok(()),
            Op::Blank => self.push(Item::Blank),
            Op::Int(value) => self.push(Item::Int(value)),
            Op::Big(value) => self.push(Item::Big(value)),
            Op::Text(length) => {
                if self.arena.len() > MOST_WAITING {
                    return Err(self.instructions.malformed("too much text at once"));
                }
                let start = (self.arena.len() - length) as u32;
                self.push(Item::Waiting { start, length: length as u32 })
            }
            Op::Mark => {
                if self.marks.len() > MOST {
                    return Err(self.instructions.malformed("too deep"));
                }
                self.marks.push(self.stack.len());
                Ok(())
            }
            Op::Pop if self.stack.len() == self.floor() && !self.marks.is_empty() => {
                self.marks.pop();
                Ok(())
            }
            Op::Pop => {
                let item = self.pop()?;
                settle(&mut self.arena, &[item]);
                self.discard(item);
                Ok(())
            }
            Op::PopMark => {
                let from = self.mark()?;
                for at in from..self.stack.len() {
                    self.discard(self.stack[at]);
                }
                self.lower(from);
                Ok(())
            }
            Op::Duplicate => {
                // No writer of snapshots does this. The copy of a container would outlive it.
                let top = self.top()?;
                let copy =
                    if matches!(top, Item::Node(_)) { Item::Blank } else { self.keep_text(top)? };
                self.push(copy)
            }
            Op::EmptyList => self.make(Node::List(List::default())),
            Op::EmptyDict => self.make(Node::Dict(Vec::new())),
            Op::ListOfMarked => {
                let from = self.mark()?;
                self.under(from, Node::List(List::default()))?;
                self.append(from + 1)
            }
            Op::Tuple(length) => {
                let from = self.above_floor(length)?;
                self.under(from, Node::List(List::default()))?;
                self.append(from + 1)
            }
            Op::DictOfMarked => {
                let from = self.mark()?;
                self.under(from, Node::Dict(Vec::new()))?;
                self.set(from + 1)
            }
            Op::Append => self.above_floor(1).and_then(|from| self.append(from)),
            Op::AppendMarked => self.mark().and_then(|from| self.append(from)),
            Op::SetItem => self.above_floor(2).and_then(|from| self.set(from)),
            Op::SetMarked => self.mark().and_then(|from| self.set(from)),
            Op::Keep(number) => self.keep(number),
            Op::Fetch(number) => match self.memo.get(&number) {
                Some(item) => self.push(*item),
                None => Err(self.instructions.malformed("a value that was never kept")),
            },
            Op::Code(opcode) => Err(self.code(opcode)),
        }
    }

    fn push(&mut self, item: Item) -> Step {
        if self.stack.len() > MOST {
            return Err(self.instructions.malformed("too many values at once"));
        }
        self.stack.push(item);
        Ok(())
    }

    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Item, Stop> {
        let top = self.stack.last().filter(|_| self.stack.len() > self.floor());
        top.copied().ok_or_else(|| self.instructions.malformed("nothing is there to use"))
    }

    fn pop(&mut self) -> Result<Item, Stop> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Where the values above the last mark begin; the mark is gone.
    fn mark(&mut self) -> Result<usize, Stop> {
        self.marks.pop().ok_or_else(|| self.instructions.malformed("no mark"))
    }

    /// Where the topmost `count` values begin.
    fn above_floor(&self, count: usize) -> Result<usize, Stop> {
        let from = self.stack.len().checked_sub(count).filter(|from| *from >= self.floor());
        from.ok_or_else(|| self.instructions.malformed("nothing is there to use"))
    }

    /// The container right below a place of the stack.
    fn container(&self, from: usize) -> Result<Item, Stop> {
        let below = from.checked_sub(1).filter(|below| *below >= self.floor());
        below
            .and_then(|below| self.stack.get(below).copied())
            .ok_or_else(|| self.instructions.malformed("nothing is there to use"))
    }

    /// Puts a new container below the values from a place of the stack on.
    fn under(&mut self, from: usize, node: Node) -> Step {
        self.make(node)?;
        self.stack[from..].rotate_right(1);
        Ok(())
    }

    /// The stack ends at a place from here on, and with it the texts that waited above.
    fn lower(&mut self, to: usize) {
        settle(&mut self.arena, &self.stack[to..]);
        self.stack.truncate(to);
    }

    fn make(&mut self, node: Node) -> Step {
        let id = match self.vacant.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None if self.nodes.len() > MOST => {
                return Err(self.instructions.malformed("too many containers at once"));
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.push(Item::Node(id))
    }

    /// Keeps the top under a number, if it is ever used again.
    fn keep(&mut self, number: Option<u32>) -> Step {
        let number = number.unwrap_or(self.kept);
        self.kept = self.kept.saturating_add(1);
        let top = self.top()?;
        if !self.fetched.contains(number) {
            return Ok(());
        }
        let kept = self.keep_text(top)?;
        if let (Item::Waiting { .. }, Some(last)) = (top, self.stack.last_mut()) {
            *last = kept;
            settle(&mut self.arena, &[top]);
        }
        if let Item::Node(node) = kept {
            self.shared.insert(node, number);
        }
        self.memo.insert(number, kept);
        Ok(())
    }

    /// A waiting text becomes one that stays; everything else is as it was.
    fn keep_text(&mut self, item: Item) -> Result<Item, Stop> {
        let Item::Waiting { start, length } = item else { return Ok(item) };
        let bytes = self.arena.get(start as usize..(start + length) as usize).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes);
        let id = self.owners.text(&text);
        if id as usize >= self.keys.len() {
            self.text_bytes += text.len() + 64;
            if self.text_bytes > MOST_TEXT {
                return Err(self.instructions.malformed("more than 1 GiB of distinct texts"));
            }
            self.keys.resize(id as usize + 1, None);
        }
        Ok(Item::Text(id))
    }

    fn key(&mut self, item: Item) -> Key {
        let of = |text: &[u8]| {
            let known = KEYS.iter().find(|(name, _)| name.as_bytes() == text);
            known.map_or(Key::Other, |(_, key)| *key)
        };
        match item {
            Item::Text(id) => {
                let owners = &self.owners;
                let place = self.keys.get_mut(id as usize);
                let find = || of(owners.text_of(id).as_bytes());
                place.map_or_else(find, |known| *known.get_or_insert_with(find))
            }
            Item::Waiting { start, length } => {
                let (start, end) = (start as usize, (start + length) as usize);
                of(self.arena.get(start..end).unwrap_or_default())
            }
            _ => Key::Other,
        }
    }

    /// Puts the entries from a place of the stack on into the dictionary below them.
    fn set(&mut self, from: usize) -> Step {
        let Item::Node(dict) = self.container(from)? else { return Err(self.no_dict()) };
        let count = self.stack.len() - from;
        match &mut self.nodes[dict as usize] {
            Node::Dict(entries) if count.is_multiple_of(2) => entries.reserve((count / 2).min(16)),
            _ => return Err(self.no_dict()),
        }
        for at in (from..self.stack.len()).step_by(2) {
            let value = self.stack[at + 1];
            let key = self.key(self.stack[at]);
            let value = match (key, value) {
                (Key::Other, value) => {
                    self.discard(value);
                    continue;
                }
                (Key::Frames, Item::Node(list)) => self.make_stack(list),
                (_, value) => self.keep_text(value)?,
            };
            if let Node::Dict(entries) = &mut self.nodes[dict as usize] {
                // Of equal keys the last counts.
                match entries.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, before)) => *before = value,
                    None => entries.push((key, value)),
                }
            }
        }
        self.lower(from);
        Ok(())
    }

    fn no_dict(&self) -> Stop {
        self.instructions.malformed("an entry for what is no dictionary")
    }

    /// Puts the items from a place of the stack on into the list below them, each as small as it can be.
    fn append(&mut self, from: usize) -> Step {
        let list = match self.container(from)? {
            Item::Node(list) if matches!(self.nodes[list as usize], Node::List(_)) => list,
            Item::Stack(_) | Item::Blank => {
                self.lower(from);
                return Ok(());
            }
            _ => return Err(self.instructions.malformed("an item for what is no list")),
        };
        let count = self.stack.len() - from;
        if let (Some(Item::Frame(_)), Node::List(list)) =
            (self.stack.get(from), &mut self.nodes[list as usize])
        {
            list.items.reserve(count);
        }
        for at in from..self.stack.len() {
            let item = self.stack[at];
            let small = match item {
                Item::Node(node) => self.shrink(node, list)?,
                Item::Frame(_) | Item::Block(_) | Item::Segment(_) | Item::Stack(_) => Some(item),
                _ => None,
            };
            if let (Some(small), Node::List(list)) = (small, &mut self.nodes[list as usize]) {
                list.items.push(small);
            }
        }
        self.lower(from);
        Ok(())
    }

    /// A dictionary that is whole, as what it stands for. An event goes out and leaves nothing.
    fn shrink(&mut self, node: u32, list: u32) -> Result<Option<Item>, Stop> {
        let Node::Dict(entries) = &self.nodes[node as usize] else {
            return Ok(Some(Item::Node(node)));
        };
        let has = |key: Key| entries.iter().any(|(known, _)| *known == key);
        let small = if has(Key::Action) {
            self.event(node, list)?;
            None
        } else if has(Key::Filename) || has(Key::Name) {
            Some(self.frame(node))
        } else if has(Key::TotalSize) || has(Key::Blocks) {
            self.segment(node)
        } else if has(Key::State) {
            self.block(node)
        } else {
            None
        };
        self.replace(node, small.unwrap_or(Item::Blank));
        Ok(small)
    }

    /// The node goes; where the pickle refers to it again, it finds what took its place.
    fn replace(&mut self, node: u32, by: Item) {
        if let Some(number) = self.shared.remove(&node) {
            self.memo.insert(number, by);
        }
        self.nodes[node as usize] = Node::Vacant;
        self.vacant.push(node);
    }

    /// A value that nothing needs, with everything in it, unless the pickle refers to it again.
    fn discard(&mut self, item: Item) {
        if !matches!(item, Item::Node(_)) {
            return;
        }
        let mut gone = vec![item];
        while let Some(item) = gone.pop() {
            let Item::Node(node) = item else { continue };
            if self.shared.contains_key(&node) {
                continue;
            }
            match std::mem::take(&mut self.nodes[node as usize]) {
                Node::Vacant => continue,
                Node::Dict(entries) => gone.extend(entries.into_iter().map(|(_, value)| value)),
                Node::List(list) => gone.extend(list.items),
            }
            self.vacant.push(node);
        }
    }

    fn value(&self, node: u32, key: Key) -> Option<Item> {
        let Node::Dict(entries) = &self.nodes[node as usize] else { return None };
        entries.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn number(&self, node: u32, key: Key) -> Option<u64> {
        match self.value(node, key)? {
            Item::Int(value) => u64::try_from(value).ok(),
            Item::Big(value) => Some(value),
            _ => None,
        }
    }

    fn text(&self, node: u32, key: Key) -> Option<&str> {
        match self.value(node, key)? {
            Item::Text(id) => Some(self.owners.text_of(id)),
            _ => None,
        }
    }

    fn text_id(&self, node: u32, key: Key) -> u32 {
        match self.value(node, key) {
            Some(Item::Text(id)) => id,
            _ => 0,
        }
    }

    fn frame(&mut self, node: u32) -> Item {
        let frame = Frame {
            name: self.text_id(node, Key::Name),
            file: self.text_id(node, Key::Filename),
            line: self.number(node, Key::Line).unwrap_or(0) as u32,
        };
        Item::Frame(self.owners.frame(frame))
    }

    /// A list of frames becomes one stack.
    fn make_stack(&mut self, list: u32) -> Item {
        let Node::List(frames) = &self.nodes[list as usize] else { return Item::Blank };
        let frames = frames.items.iter().filter_map(|item| match item {
            Item::Frame(frame) => Some(*frame),
            _ => None,
        });
        self.frames.clear();
        self.frames.extend(frames);
        let stack = Item::Stack(self.owners.stack(&self.frames));
        self.replace(list, stack);
        stack
    }

    fn stack_of(&self, node: u32) -> u32 {
        match self.value(node, Key::Frames) {
            Some(Item::Stack(stack)) => stack,
            _ => 0,
        }
    }

    fn stream_of(&mut self, node: u32) -> u32 {
        let pointer = self.number(node, Key::Stream).unwrap_or(0);
        let next = self.streams.len() as u32;
        *self.streams.entry(pointer).or_insert(next)
    }

    fn event(&mut self, node: u32, list: u32) -> Step {
        let kind = match self.text(node, Key::Action) {
            Some("alloc") => Kind::Alloc,
            Some("free_completed" | "free") => Kind::Free,
            Some("free_requested") => Kind::FreeRequested,
            Some("segment_alloc") => Kind::Grow,
            Some("segment_free") => Kind::Release,
            Some("segment_map") => Kind::Map,
            Some("segment_unmap") => Kind::Unmap,
            Some("oom") => Kind::Oom,
            _ => Kind::Other,
        };
        let place = match kind {
            Kind::Oom => self.number(node, Key::DeviceFree).or(Some(0)),
            _ => self.number(node, Key::Addr),
        };
        let size = self.number(node, Key::Size);
        let (address, bytes) = match (place, size) {
            (Some(place), Some(size)) if place.checked_add(size).is_some() => (place, size),
            _ if kind == Kind::Other => (0, 0),
            _ => {
                self.unreadable += 1;
                return Ok(());
            }
        };
        let time_ns = self.number(node, Key::TimeUs).unwrap_or(0).saturating_mul(1000);
        let (stream, owner) = (self.stream_of(node), self.stack_of(node));
        // Blocks are multiples of 512 bytes; what a block could not be split from is not told.
        let granted = match kind {
            Kind::Alloc => bytes.checked_next_multiple_of(512).unwrap_or(bytes),
            _ => 0,
        };
        let place = Record { stream, owner, ..Record::of(kind, time_ns) };
        let record = Record { name: address, address, bytes, granted, ..place };
        let index = self.spool.len();
        self.spool.push(&record)?;
        let Node::List(list) = &mut self.nodes[list as usize] else { return Ok(()) };
        let events = list.events.get_or_insert(index..index);
        if events.end != index {
            return Err(self.instructions.malformed("events of two devices in turn"));
        }
        events.end = index + 1;
        Ok(())
    }

    fn block(&mut self, node: u32) -> Option<Item> {
        let bytes = self.number(node, Key::Size)?;
        let address = self.number(node, Key::Address);
        let block = TorchBlock {
            address: address.unwrap_or(0),
            bytes,
            requested: self.number(node, Key::RequestedSize).unwrap_or(bytes),
            used: self.text(node, Key::State).is_some_and(|state| state.starts_with("active")),
        };
        let owner = self.stack_of(node);
        self.blocks.push((block, address.is_some(), owner));
        u32::try_from(self.blocks.len() - 1).ok().map(Item::Block)
    }

    fn segment(&mut self, node: u32) -> Option<Item> {
        let blocks = self.value(node, Key::Blocks);
        let address = self.number(node, Key::Address);
        let bytes = self.number(node, Key::TotalSize);
        let mut next = address.unwrap_or(0);
        let (mut all, mut owners) = (Vec::new(), Vec::new());
        let items = match blocks {
            Some(Item::Node(list)) => match &self.nodes[list as usize] {
                Node::List(list) => list.items.clone(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        for item in items {
            let Item::Block(block) = item else { continue };
            let (mut block, placed, owner) = self.blocks[block as usize];
            // Older snapshots leave the address of a block to be counted up.
            block.address = if placed { block.address } else { next };
            next = block.address.saturating_add(block.bytes);
            all.push(block);
            owners.push(owner);
        }
        if let Some(list) = blocks {
            self.discard(list);
        }
        let whole = address.zip(bytes).filter(|(at, bytes)| at.checked_add(*bytes).is_some());
        let Some((address, bytes)) = whole else {
            self.unreadable += 1;
            return None;
        };
        let segment = TorchSegment {
            address,
            bytes,
            stream: u64::from(self.stream_of(node)),
            small: self.text(node, Key::SegmentType) == Some("small"),
            expandable: self.number(node, Key::IsExpandable) == Some(1),
            blocks: all,
        };
        let device = self.number(node, Key::Device).unwrap_or(0);
        self.segments.push((device, segment, owners));
        u32::try_from(self.segments.len() - 1).ok().map(Item::Segment)
    }

    fn code(&mut self, opcode: u8) -> Stop {
        let at = self.instructions.position().saturating_sub(1) as usize;
        let on_stack = || {
            let names = self.stack.iter().rev().take(2).rev().map(|item| match item {
                Item::Waiting { start, length } => {
                    let range = *start as usize..(start + length) as usize;
                    String::from_utf8_lossy(self.arena.get(range).unwrap_or_default()).into_owned()
                }
                Item::Text(id) => self.owners.text_of(*id).to_string(),
                _ => "?".to_string(),
            });
            names.collect::<Vec<_>>().join(".")
        };
        let name = match opcode {
            0x93 => on_stack(),
            b'R' | b'o' | 0x81 | 0x92 => "a call".to_string(),
            b'b' => "an object's state".to_string(),
            _ => {
                self.instructions.named(opcode).unwrap_or("an object outside the file".to_string())
            }
        };
        Stop::Pickle(PickleError::Code { at, name })
    }

    fn whole(mut self) -> Result<Contents, Failed> {
        let root = match self.pop() {
            Ok(Item::Node(root)) => root,
            _ => return Err(not_a_snapshot("it is no dictionary")),
        };
        let Some(Item::Node(segments)) = self.value(root, Key::Segments) else {
            return Err(not_a_snapshot("it has no segments"));
        };
        let lists = match self.value(root, Key::DeviceTraces) {
            Some(Item::Node(lists)) => self.items(lists).to_vec(),
            _ => Vec::new(),
        };
        let conf = match self.value(root, Key::Settings) {
            Some(Item::Node(settings)) => self.text(settings, Key::Conf).unwrap_or("").to_string(),
            _ => String::new(),
        };
        let listed: Vec<u32> = self.items(segments).iter().filter_map(segment_number).collect();
        let mut made: Vec<Option<_>> = self.segments.drain(..).map(Some).collect();
        let listed = listed.into_iter().filter_map(|at| made.get_mut(at as usize)?.take());
        let segments = listed.collect();
        Ok(self.contents(segments, &lists, conf, false, Vec::new()))
    }

    /// What is whole of a file that breaks off.
    fn cut(mut self, error: PickleError) -> Result<Contents, Failed> {
        let traces = self.stack.iter().position(|item| {
            let Item::Text(id) = item else { return false };
            self.owners.text_of(*id) == "device_traces"
        });
        let waiting = |item: &Item| match item {
            Item::Waiting { start, length } => {
                let range = *start as usize..(start + length) as usize;
                self.arena.get(range).unwrap_or_default() == b"device_traces"
            }
            _ => false,
        };
        let traces = traces.or_else(|| self.stack.iter().position(waiting));
        let above = traces.map_or(&[][..], |at| &self.stack[at + 1..]);
        let mut lists = Vec::new();
        if let Some(Item::Node(outer)) = above.first() {
            lists.extend_from_slice(self.items(*outer));
            lists.extend(above[1..].iter().filter(|item| self.is_list(item)));
        }
        let has_events = |item: &Item| self.events_of(item).is_some();
        let known = lists.iter().rposition(has_events).map_or(0, |last| last + 1);
        lists.truncate(known);
        if self.spool.is_empty() {
            return Err(Failed::Damaged { what: format!("{error}; no event comes before that") });
        }
        let note = format!(
            "{error}; the {} events before that are used, and what was out at the start is what they free",
            self.spool.len()
        );
        let segments = std::mem::take(&mut self.segments);
        Ok(self.contents(segments, &lists, String::new(), true, vec![note]))
    }

    fn contents(
        self,
        segments: Vec<(u64, TorchSegment, Vec<u32>)>,
        lists: &[Item],
        conf: String,
        cut: bool,
        mut notes: Vec<String>,
    ) -> Contents {
        if self.unreadable > 0 {
            let count = self.unreadable;
            notes.push(format!(
                "{count} events or segments lack their address or size and are left out"
            ));
        }
        let devices = lists.iter().enumerate();
        let devices = devices.filter_map(|(n, list)| Some((n as u64, self.events_of(list)?)));
        let devices = devices.collect();
        Contents { segments, devices, conf, spool: self.spool, owners: self.owners, cut, notes }
    }

    fn items(&self, node: u32) -> &[Item] {
        match &self.nodes[node as usize] {
            Node::List(list) => &list.items,
            _ => &[],
        }
    }

    fn is_list(&self, item: &Item) -> bool {
        matches!(item, Item::Node(node) if matches!(self.nodes[*node as usize], Node::List(_)))
    }

    fn events_of(&self, item: &Item) -> Option<Range<u64>> {
        match item {
            Item::Node(node) => match &self.nodes[*node as usize] {
                Node::List(list) => list.events.clone(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What lies in the arena above the first text that is taken is free: the stack and the arena grow alike.
fn settle(arena: &mut Vec<u8>, taken: &[Item]) {
    let first = taken.iter().find_map(|item| match item {
        Item::Waiting { start, .. } => Some(*start),
        _ => None,
    });
    if let Some(start) = first {
        arena.truncate(start as usize);
    }
}

fn segment_number(item: &Item) -> Option<u32> {
    match item {
        Item::Segment(number) => Some(*number),
        _ => None,
    }
}

fn not_a_snapshot(what: &str) -> Failed {
    Failed::Unknown { what: format!("a pickle, but not a PyTorch memory snapshot: {what}") }
}
