//! What an allocation, an event and a replayed step cost. `cargo bench -p vramlab-memory`.

use std::time::Instant;
use vramlab_memory::conformance::Random;
use vramlab_memory::heap::Request;
use vramlab_memory::ledger::{Event, EventKind, Ledger, Owner};
use vramlab_memory::replay::{Device, Step, Trace, run};
use vramlab_memory::{
    Bfc, BfcOptions, Block, BlockId, Fake, GIB, Heap, MemoryResource, ModeSpec, Stream,
};

const LIVE: usize = 100_000;
const ROUNDS: usize = 2_000_000;
const BATCH: usize = 50_000;

fn main() {
    bfc("sizes 1 B to 64 KiB", 64 << 10);
    bfc("sizes 1 B to 1 MiB", 1 << 20);
    ledger();
    heap(true);
    heap(false);
    for mode in vramlab_memory::modes::MODES {
        replay(mode.name);
    }
    replay("ondemand gc=on");
    table();
}

/// The fold that a table of live arrays is made of.
fn table() {
    let mut heap = Heap::new(Box::new(Fake::new(64 * GIB)), ModeSpec::default());
    let mut blocks = Vec::new();
    for index in 0..10_000 {
        let owner = heap.ledger_mut().intern(Owner::Variable(format!("x{index}")));
        blocks.push(heap.allocate(Request { owner, ..Request::of(4096) }).expect("fits"));
    }
    let start = Instant::now();
    let owners = heap.ledger().by_owner().len() + heap.chunks().len();
    println!(
        "{:<58} {:>8.1} µs",
        "owners and chunks of 10,000 live blocks",
        start.elapsed().as_secs_f64() * 1e6
    );
    assert_eq!(owners, 20_001);
    blocks.into_iter().for_each(|block| heap.deallocate(block, Stream(0), 0));
}

fn per(label: &str, start: Instant, count: usize) {
    print(label, start.elapsed().as_nanos() as f64 / count as f64);
}

fn print(label: &str, ns: f64) {
    println!("{label:<58} {ns:>8.1} ns  {:>8.2} M/s", 1e3 / ns);
}

/// One block goes, another comes, at a steady number of live ones, the one that goes at random.
fn bfc(label: &str, most: u64) {
    let mut fake = Fake::new(64 * GIB);
    let mut bfc = Bfc::new(BfcOptions::preallocate(60 * GIB));
    let mut random = Random::new(1);
    let mut take = |bfc: &mut Bfc, bytes| bfc.allocate(bytes, Stream(0), &mut fake).expect("fits");
    let mut live: Vec<Block> = (0..LIVE).map(|_| take(&mut bfc, random.size(most))).collect();
    let sizes: Vec<u64> = (0..ROUNDS).map(|_| random.size(most)).collect();
    let picks: Vec<usize> = (0..ROUNDS).map(|_| random.below(LIVE as u64) as usize).collect();
    let mut idle = Fake::new(1);
    // The best of batches: other programs on the machine only ever add to the time.
    let mut best = f64::INFINITY;
    for (sizes, picks) in sizes.chunks(BATCH).zip(picks.chunks(BATCH)) {
        let start = Instant::now();
        for (size, pick) in sizes.iter().zip(picks) {
            let block = take(&mut bfc, *size);
            let gone = std::mem::replace(&mut live[*pick], block);
            bfc.deallocate(gone, Stream(0), &mut idle);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (2 * sizes.len()) as f64);
    }
    print(&format!("bfc: alloc or free at 100,000 live, {label}"), best);
    assert_eq!(bfc.check(), Ok(()));
}

/// Blocks come and go in no order, 100,000 of them live, and the ring is full.
fn ledger() {
    let mut ledger = Ledger::default();
    let event = |kind, block| Event { block, requested: 1000, granted: 1024, ..Event::of(kind, 0) };
    let come = |ledger: &mut Ledger| {
        let block = ledger.next_block();
        ledger.record(event(EventKind::Alloc, block));
        block
    };
    let mut live: Vec<BlockId> = (0..LIVE).map(|_| come(&mut ledger)).collect();
    let mut random = Random::new(2);
    let picks: Vec<usize> = (0..ROUNDS).map(|_| random.below(LIVE as u64) as usize).collect();
    let start = Instant::now();
    for pick in picks {
        ledger.record(event(EventKind::Free, live[pick]));
        live[pick] = come(&mut ledger);
    }
    per("ledger: an event, ring full, 100,000 live", start, 2 * ROUNDS);
}

fn heap(recording: bool) {
    let mut heap = Heap::new(Box::new(Fake::new(64 * GIB)), ModeSpec::default());
    heap.ledger_mut().set_recording(recording);
    let start = Instant::now();
    for now_ns in 0..ROUNDS as u64 {
        let block = heap.allocate(Request { now_ns, ..Request::of(4096) }).expect("fits");
        heap.deallocate(block, Stream(0), now_ns);
    }
    per(&format!("heap: alloc or free, one live, recording {recording}"), start, 2 * ROUNDS);
}

fn replay(mode: &str) {
    let mut random = Random::new(5);
    let mut steps = Vec::with_capacity(2 * ROUNDS);
    for id in 0..ROUNDS as u64 {
        steps.push(Step::Alloc { id, bytes: random.size(1 << 20) });
        if id >= 10_000 {
            steps.push(Step::Free { id: id - 10_000 });
        }
    }
    let trace = Trace::new(steps);
    let mode = ModeSpec::parse(mode).expect("a valid mode");
    let start = Instant::now();
    let outcome = run(&trace, &mode, Device::of(80 * GIB));
    assert!(outcome.passes());
    per(&format!("replay: a step, 10,000 live, {mode}"), start, trace.steps.len());
}
