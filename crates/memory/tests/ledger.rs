//! The ledger: bounded, its checkpoint right, its scopes nested, its figures a fold.

use vramlab_memory::conformance::Random;
use vramlab_memory::heap::Request;
use vramlab_memory::ledger::{Event, EventKind, Ledger, Owner, Site};
use vramlab_memory::replay::{Device, Part, Step, Trace, run};
use vramlab_memory::{Block, BlockId, Fake, GIB, Heap, MIB, ModeSpec, Stream};

const S: Stream = Stream(0);

fn heap() -> Heap {
    Heap::new(Box::new(Fake::new(GIB)), ModeSpec::default())
}

fn event(kind: EventKind, block: BlockId) -> Event {
    let bytes = block.sequence();
    Event { block, requested: bytes, granted: bytes, ..Event::of(kind, 0) }
}

#[test]
fn the_ring_is_bounded_and_its_checkpoint_is_what_lived_at_its_tail() {
    let mut ledger = Ledger::new(100);
    let mut random = Random::new(1);
    let mut all: Vec<Event> = Vec::new();
    let mut live: Vec<BlockId> = Vec::new();
    for _ in 1..5_000 {
        let event = if random.below(2) == 0 || live.is_empty() {
            live.push(ledger.next_block());
            event(EventKind::Alloc, live[live.len() - 1])
        } else {
            let gone = live.swap_remove(random.below(live.len() as u64) as usize);
            event(EventKind::Free, gone)
        };
        ledger.record(event);
        all.push(event);
    }
    assert_eq!((ledger.events().len(), ledger.dropped()), (100, 4_999 - 100));
    let mut expected = std::collections::BTreeSet::new();
    for event in &all[..all.len() - 100] {
        match event.kind {
            EventKind::Alloc => expected.insert(event.block),
            _ => expected.remove(&event.block),
        };
    }
    let checkpoint: Vec<_> = ledger.checkpoint().iter().map(|live| live.block).collect();
    assert_eq!(checkpoint, expected.into_iter().collect::<Vec<_>>());
    live.sort_unstable();
    assert_eq!(ledger.live().iter().map(|live| live.block).collect::<Vec<_>>(), live);
    assert_eq!(
        ledger.totals().live_granted,
        live.iter().map(|block| block.sequence()).sum::<u64>()
    );
}

#[test]
fn scopes_nest_and_an_inner_peak_counts_outside() {
    let mut heap = heap();
    let kept = heap.allocate(Request::of(10 * MIB)).expect("fits");
    heap.ledger_mut().begin_cell(1, 7);
    heap.ledger_mut().begin_scope(2, "layer3");
    let inner = heap.allocate(Request::of(100 * MIB)).expect("fits");
    heap.deallocate(inner, S, 3);
    let layer = heap.ledger_mut().end_scope(4);
    let small = heap.allocate(Request::of(MIB)).expect("fits");
    heap.deallocate(kept, S, 5);
    let cell = heap.ledger_mut().end_cell(6);
    assert_eq!(
        (&*layer.name, layer.peak, layer.allocated, layer.freed),
        ("layer3", 110 * MIB, 100 * MIB, 100 * MIB)
    );
    assert_eq!(
        (&*cell.name, cell.peak, cell.live_at_begin, cell.live),
        ("7", 110 * MIB, 10 * MIB, MIB)
    );
    assert_eq!((cell.num_allocs, cell.num_frees, cell.driver_allocs), (2, 2, 0));
    assert_eq!(heap.ledger().depth(), 0);
    assert_eq!(heap.ledger().scope(7).peak, 110 * MIB);
    heap.deallocate(small, S, 8);
}

#[test]
fn a_cell_that_ends_by_an_error_closes_its_scopes() {
    let mut ledger = Ledger::default();
    ledger.begin_cell(0, 1);
    ledger.begin_scope(0, "a");
    ledger.begin_scope(0, "b");
    ledger.end_cell(0);
    assert_eq!(ledger.depth(), 0);
    // An end without a begin is answered with the figures of everything.
    assert_eq!(ledger.end_scope(0).num_allocs, 0);
}

#[test]
fn owners_change_hands() {
    let mut heap = heap();
    heap.ledger_mut().set_site(Site { cell: 2, line: 5 });
    let block = heap.allocate(Request::of(1000)).expect("fits");
    let ledger = heap.ledger_mut();
    let out = ledger.intern(Owner::Out(3));
    ledger.change_owner(1, block.id(), out);
    assert_eq!(ledger.intern(Owner::Out(3)), out);
    let figures = ledger.by_owner();
    assert_eq!(ledger.owner(figures[0].owner).to_string(), "Out[3]");
    assert_eq!((figures[0].bytes, figures[0].requested, figures[0].blocks), (1024, 1000, 1));
    assert_eq!(figures[0].site, Site { cell: 2, line: 5 });
    assert_eq!(ledger.at_address(block.address() + 1023).map(|live| live.block), Some(block.id()));
    assert_eq!(ledger.at_address(block.address() + 1024), None);
    heap.deallocate(block, S, 2);
    assert_eq!(heap.ledger().by_owner(), []);
}

#[test]
fn figures_are_right_with_recording_off() {
    let mut heap = heap();
    heap.ledger_mut().set_recording(false);
    let block = heap.allocate(Request::of(MIB)).expect("fits");
    assert_eq!(heap.stats().num_allocs, 1);
    assert_eq!(heap.ledger().events().len(), 0);
    assert_eq!(heap.ledger().checkpoint().len(), 1);
    heap.ledger_mut().set_recording(true);
    heap.deallocate(block, S, 0);
    assert_eq!(heap.ledger().events().len(), 1);
    let trace = Trace::from_ledger(heap.ledger(), Part::Kept).expect("all that is kept");
    assert_eq!(trace.steps, [Step::Alloc { id: 1, bytes: MIB }, Step::Free { id: 1 }]);
    assert_eq!(trace.start, 1);
}

#[test]
fn a_replay_of_the_ledger_in_the_same_mode_gives_the_same_figures() {
    for mode in
        ["preallocate", "ondemand", "ondemand gc=on", "platform", "caching", "vmm", "cuda_async"]
    {
        let mode = ModeSpec::parse(mode).expect("a valid mode");
        let mut heap = Heap::new(Box::new(Fake::new(GIB)), mode.clone());
        let mut random = Random::new(9);
        let mut blocks: Vec<Block> = Vec::new();
        for _ in 0..20_000 {
            if random.below(100) < 52 {
                blocks.extend(heap.allocate(Request::of(random.size(8 * MIB))).ok());
            } else if !blocks.is_empty() {
                let block = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
                heap.deallocate(block, S, 0);
            }
        }
        let trace = Trace::from_ledger(heap.ledger(), Part::Kept).expect("all that is kept");
        let outcome = run(&trace, &mode, Device::of(GIB));
        let stats = heap.stats();
        assert_eq!(outcome.strays, 0);
        if outcome.passes() {
            assert_eq!(outcome.peak_in_use, stats.peak_bytes_in_use, "{mode}");
            assert_eq!(outcome.peak_pool, stats.peak_pool_bytes, "{mode}");
            assert_eq!(outcome.driver_calls, stats.driver_calls(), "{mode}");
            assert_eq!(outcome.fragmentation, stats.fragmentation(), "{mode}");
        } else {
            // The first request that failed live fails in the replay.
            let first = heap.ledger().events().find(|event| event.kind == EventKind::Oom);
            assert_eq!(outcome.failure.map(|f| f.asked), first.map(|event| event.requested));
        }
        blocks.into_iter().for_each(|block| heap.deallocate(block, S, 0));
    }
}

#[test]
fn strays_are_counted_and_ignored() {
    let steps = vec![
        Step::Free { id: 4 },
        Step::Alloc { id: 1, bytes: 0 },
        Step::Alloc { id: 1, bytes: 512 },
        Step::Alloc { id: 1, bytes: 512 },
        Step::Free { id: 1 },
        Step::Free { id: 1 },
    ];
    let trace = Trace::new(steps);
    let outcome = run(&trace, &ModeSpec::default(), Device::of(GIB));
    assert!(outcome.passes());
    assert_eq!((outcome.strays, outcome.steps), (4, 6));
    let huge = Trace::new(vec![Step::Alloc { id: 1, bytes: 1 << 63 }, Step::Free { id: 1 }]);
    assert!(!run(&huge, &ModeSpec::default(), Device::of(GIB)).passes());
}
