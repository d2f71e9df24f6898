//! A heap that lives: random requests and returns with owners, cells, scopes, failures and switches.

use std::mem::take;
use vramlab_export::{Executable, Recording, find};
use vramlab_memory::conformance::Random;
use vramlab_memory::heap::Request;
use vramlab_memory::ledger::{EventKind, Owner, Site};
use vramlab_memory::{Block, Fake, GIB, Heap, KIB, MIB, ModeSpec, Policy, Road, Stream, switch};

/// Every mode, with options that change what segments look like.
pub const MODES: [&str; 8] = [
    "preallocate",
    "ondemand",
    "ondemand gc=on",
    "platform",
    "cuda_async release_threshold=0",
    "vmm",
    "caching",
    "caching expandable_segments=on",
];

/// A request that no device of a test can answer.
pub const NEVER: u64 = 1 << 40;

/// A heap, the blocks that are out, and a clock.
pub struct Life {
    pub heap: Heap,
    pub now: u64,
    blocks: Vec<Block>,
    random: Random,
    cell: u32,
}

impl Life {
    pub fn new(mode: &str) -> Life {
        let mode = ModeSpec::parse(mode).expect("a valid mode");
        let heap = Heap::new(Box::new(Fake::new(2 * GIB)), mode);
        Life { heap, now: 1000, blocks: Vec::new(), random: Random::new(7), cell: 0 }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1 + self.random.below(5000);
        self.now
    }

    pub fn allocate(&mut self, bytes: u64, stream: Stream) -> Block {
        let now_ns = self.tick();
        let request = Request { bytes, stream, now_ns, ..Request::default() };
        self.heap.allocate(request).expect("there is room")
    }

    /// A cell of so many steps, with one request that can never pass.
    pub fn busy(&mut self, steps: u64) {
        self.cell += 1;
        let (now, cell) = (self.tick(), self.cell);
        self.heap.ledger_mut().begin_cell(now, cell);
        self.heap.ledger_mut().begin_scope(now, "step \"one\"");
        for step in 0..steps {
            self.heap.ledger_mut().set_site(Site { cell, line: 1 + (step % 9) as u32 });
            self.step(step);
        }
        let now_ns = self.tick();
        let never = Request { bytes: NEVER, now_ns, ..Request::default() };
        self.heap.allocate(never).expect_err("larger than the device");
        self.heap.ledger_mut().note(EventKind::Compile, now_ns, "f", 400);
        self.heap.ledger_mut().end_cell(now_ns);
    }

    fn step(&mut self, step: u64) {
        let now = self.tick();
        if self.blocks.len() > 40 || (self.random.below(5) < 2 && !self.blocks.is_empty()) {
            let at = self.random.below(self.blocks.len() as u64) as usize;
            let block = self.blocks.swap_remove(at);
            return self.heap.deallocate(block, Stream(0), now);
        }
        let bytes = match self.random.below(4) {
            0 => 1 + self.random.below(4 * KIB),
            1 => 1 + self.random.below(MIB),
            2 => MIB + self.random.below(9 * MIB),
            _ => 10 * MIB + self.random.below(10 * MIB),
        };
        let block = self.allocate(bytes, Stream(0));
        if !step.is_multiple_of(3) {
            let owner = Owner::Variable(format!("params[{}].w", step % 11));
            let owner = self.heap.ledger_mut().intern(owner);
            self.heap.ledger_mut().change_owner(self.now, block.id(), owner);
        }
        self.blocks.push(block);
    }

    /// As the runtime switches: side by side, or through the host.
    pub fn switch(&mut self, to: &str) {
        let to = ModeSpec::parse(to).expect("a valid mode");
        let now = self.tick();
        self.blocks.sort_unstable_by_key(Block::id);
        match switch::plan(&self.heap, &to, Policy::Migrate).road {
            Road::SideBySide => {
                self.heap.begin_switch(to, now);
                let blocks = take(&mut self.blocks);
                for block in &blocks {
                    self.blocks.push(self.heap.duplicate(block, now).expect("planned"));
                }
                blocks.into_iter().for_each(|block| self.heap.retire(block, now));
            }
            Road::ThroughHost => {
                let blocks = take(&mut self.blocks).into_iter();
                let lifted: Vec<_> = blocks.map(|block| self.heap.lift(block, now)).collect();
                self.heap.begin_switch(to, now);
                for transit in lifted {
                    self.blocks.push(self.heap.land(transit, now).expect("planned"));
                }
            }
            Road::Stay => self.heap.begin_switch(to, now),
            Road::Refused => panic!("{to} has no room"),
        }
    }

    /// Everything goes back.
    pub fn end(mut self) {
        let now = self.tick();
        take(&mut self.blocks)
            .into_iter()
            .for_each(|block| self.heap.deallocate(block, Stream(0), now));
        self.heap.check().expect("a sound heap");
    }
}

pub fn recording<'a>(heap: &'a Heap, executables: &'a [Executable]) -> Recording<'a> {
    Recording { heap, device: "dry:2GiB", executables, epoch_ns: 1 << 60, now_ns: 1 << 40 }
}

pub fn exported(heap: &Heap, format: &str) -> Vec<u8> {
    exported_with(heap, format, &[])
}

pub fn exported_with(heap: &Heap, format: &str, executables: &[Executable]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let format = find(format).expect("a format");
    (format.write)(&recording(heap, executables), &mut bytes).expect("a vector takes all");
    bytes
}
