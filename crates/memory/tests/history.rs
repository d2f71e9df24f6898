//! The course of figures that the events tell is the one that the allocators had, in every mode and through switches.

use vramlab_memory::conformance::Random;
use vramlab_memory::heap::Request;
use vramlab_memory::ledger::{EventKind, Ledger, Moment, history};
use vramlab_memory::{Block, Fake, GIB, Heap, KIB, MIB, ModeSpec, Stream};

const MODES: [&str; 10] = [
    "preallocate",
    "ondemand",
    "ondemand gc=on",
    "platform",
    "vmm",
    "vmm keep=0",
    "cuda_async",
    "cuda_async release_threshold=0",
    "caching",
    "caching expandable_segments=on",
];

fn mode(text: &str) -> ModeSpec {
    ModeSpec::parse(text).expect("a valid mode")
}

struct Course {
    heap: Heap,
    random: Random,
    blocks: Vec<Block>,
    /// Figures by the number of events that led to them.
    seen: Vec<(u64, Moment)>,
}

impl Course {
    fn new(text: &str, ring: usize, seed: u64) -> Course {
        let driver = Box::new(Fake::new(GIB));
        let heap = Heap::with_ledger(driver, mode(text), Ledger::new(ring));
        Course { heap, random: Random::new(seed), blocks: Vec::new(), seen: Vec::new() }
    }

    fn step(&mut self) {
        let wants = self.random.below(5) < 3 || self.blocks.is_empty();
        if wants {
            let bytes = match self.random.below(3) {
                0 => 1 + self.random.below(4 * KIB),
                1 => 1 + self.random.below(3 * MIB),
                _ => 1 + self.random.below(60 * MIB),
            };
            self.blocks.extend(self.heap.allocate(Request::of(bytes)));
        } else {
            let gone = self.random.below(self.blocks.len() as u64) as usize;
            self.heap.deallocate(self.blocks.swap_remove(gone), Stream(0), 0);
        }
        if self.random.below(40) == 0 {
            self.heap.trim(0);
        }
        self.heap.synchronize(0);
        self.note();
    }

    /// Half of the blocks move, the others stay behind.
    fn switch(&mut self, text: &str) {
        self.heap.begin_switch(mode(text), 0);
        for block in std::mem::take(&mut self.blocks) {
            let moves = self.random.below(2) == 0;
            match if moves { self.heap.duplicate(&block, 0).ok() } else { None } {
                Some(copy) => {
                    self.heap.retire(block, 0);
                    self.blocks.push(copy);
                }
                None => self.blocks.push(block),
            }
        }
        self.heap.synchronize(0);
        self.note();
    }

    fn note(&mut self) {
        let (ledger, stats) = (self.heap.ledger(), self.heap.stats());
        let count = ledger.dropped() + ledger.events().len() as u64;
        let moment = Moment {
            requested: stats.requested_bytes,
            in_use: stats.bytes_in_use,
            pool: stats.pool_bytes,
            largest_free: stats.largest_free_block_bytes,
        };
        self.seen.push((count, moment));
    }

    /// How many moments agreed; one that does not is a failure.
    #[track_caller]
    fn check(&self, what: &str) -> usize {
        let ledger = self.heap.ledger();
        let mut moments = Vec::new();
        let begin = history::walk(ledger, |_, moment| moments.push(*moment));
        let mut agreed = 0;
        for (count, seen) in &self.seen {
            let Some(index) = count.checked_sub(ledger.dropped()) else { continue };
            let told = if index == 0 { begin } else { moments[index as usize - 1] };
            assert_eq!(told, *seen, "{what}, after {count} events");
            agreed += 1;
        }
        let now = moments.last().copied().unwrap_or(begin);
        let fragmentation = (self.heap.stats().fragmentation() * 1e6).round() as u64;
        assert!(now.fragmentation().abs_diff(fragmentation) <= 1, "{what}");
        agreed
    }
}

#[test]
fn every_mode_is_told_by_its_events() {
    for text in MODES {
        for seed in 1..=3 {
            let mut course = Course::new(text, 1_000_000, seed);
            for _ in 0..400 {
                course.step();
            }
            assert_eq!(course.check(text), 400);
        }
    }
}

#[test]
fn what_left_the_ring_is_told_by_its_checkpoint() {
    for text in MODES {
        let mut course = Course::new(text, 150, 9);
        for _ in 0..400 {
            course.step();
        }
        assert!(course.heap.ledger().dropped() > 150, "{text}");
        assert!(course.check(text) > 10, "{text}");
    }
}

#[test]
fn switches_are_told_too() {
    for ring in [1_000_000, 120] {
        for seed in 1..=8 {
            let mut course = Course::new("preallocate fraction=0.4", ring, seed);
            for _ in 0..30 {
                for _ in 0..12 {
                    course.step();
                }
                let next = MODES[course.random.below(MODES.len() as u64) as usize];
                course.switch(if next == "preallocate" {
                    "preallocate fraction=0.3"
                } else {
                    next
                });
            }
            course.check(&format!("ring {ring}, seed {seed}"));
        }
    }
}

#[test]
fn recording_that_stops_leaves_a_true_beginning() {
    let mut course = Course::new("ondemand", 1_000_000, 4);
    for _ in 0..50 {
        course.step();
    }
    course.heap.ledger_mut().set_recording(false);
    for _ in 0..50 {
        course.step();
    }
    course.heap.ledger_mut().set_recording(true);
    for _ in 0..50 {
        course.step();
    }
    assert!(course.check("resumed") > 50);
}

#[test]
fn the_mode_at_the_beginning_is_kept() {
    let mut course = Course::new("ondemand", 10, 1);
    let name = |course: &Course| {
        let ledger = course.heap.ledger();
        ledger.text_of(ledger.held_at_begin().mode().0).to_string()
    };
    assert_eq!(name(&course), "ondemand");
    course.switch("platform");
    let switched = course.heap.ledger().events().any(|event| event.kind == EventKind::ModeSwitch);
    assert!(switched && name(&course) == "ondemand");
    for _ in 0..40 {
        course.step();
    }
    assert_eq!(name(&course), "platform");
}
