//! Switches of mode: nothing is lost, whatever is live, and the plan tells the truth.

use vramlab_memory::conformance::Random;
use vramlab_memory::heap::Request;
use vramlab_memory::{Block, Fake, GIB, Heap, MIB, ModeSpec, Policy, Road, Stream, switch};

const MODES: [&str; 8] = [
    "vmm",
    "cuda_async release_threshold=0",
    "caching",
    "preallocate",
    "ondemand",
    "ondemand gc=on",
    "platform",
    "preallocate fraction=0.5",
];

fn mode(text: &str) -> ModeSpec {
    ModeSpec::parse(text).expect("a valid mode")
}

fn heap(text: &str) -> Heap {
    Heap::new(Box::new(Fake::new(GIB)), mode(text))
}

#[test]
fn stages_through_the_host_when_both_pools_do_not_fit() {
    let mut heap = heap("preallocate");
    let a = heap.allocate(Request::of(10 * MIB)).expect("fits");
    let plan = switch::plan(&heap, &mode("preallocate fraction=0.5"), Policy::Migrate);
    assert_eq!((plan.road, plan.new_pool), (Road::ThroughHost, 512 * MIB));
    assert_eq!(plan.peak, 768 * MIB);
    assert!(plan.fits() && plan.staged_through_host());
    let id = a.id();
    let lifted = heap.lift(a, 0);
    heap.begin_switch(mode("preallocate fraction=0.5"), 0);
    assert_eq!(heap.stats().pool_bytes, 0);
    let a = heap.land(lifted, 0).expect("planned");
    assert_eq!((a.id(), heap.stats().pool_bytes), (id, 512 * MIB));
    heap.deallocate(a, Stream(0), 0);
}

#[test]
fn a_switch_that_does_not_fit_is_refused() {
    let mut heap = heap("platform");
    let a = heap.allocate(Request::of(900 * MIB)).expect("fits");
    let plan = switch::plan(&heap, &mode("preallocate"), Policy::Migrate);
    assert_eq!(plan.road, Road::Refused);
    assert!(!plan.fits());
    heap.deallocate(a, Stream(0), 0);
}

#[test]
fn new_only_keeps_the_old_pool_until_its_last_block_is_gone() {
    let mut heap = heap("ondemand");
    let a = heap.allocate(Request::of(10 * MIB)).expect("fits");
    let plan = switch::plan(&heap, &mode("platform"), Policy::NewOnly);
    assert_eq!((plan.road, plan.arrays), (Road::Stay, 1));
    heap.begin_switch(mode("platform"), 0);
    let b = heap.allocate(Request::of(MIB)).expect("fits");
    assert_eq!(heap.older_pools().len(), 1);
    assert_eq!(heap.stats().pool_bytes, 17 * MIB);
    assert_ne!(a.pool(), b.pool());
    heap.deallocate(a, Stream(0), 0);
    assert_eq!(heap.older_pools().len(), 0);
    assert_eq!(heap.stats().pool_bytes, MIB);
    heap.deallocate(b, Stream(0), 0);
}

#[test]
fn mode_after_arrays_is_refused_with_holders() {
    let mut heap = heap("ondemand");
    let a = heap.allocate(Request::of(10 * MIB)).expect("fits");
    let plan = switch::plan(&heap, &mode("platform"), Policy::Refuse);
    assert_eq!((plan.road, plan.arrays), (Road::Refused, 1));
    assert_eq!(heap.ledger().by_owner().len(), 1);
    heap.deallocate(a, Stream(0), 0);
    let plan = switch::plan(&heap, &mode("platform"), Policy::Refuse);
    assert_eq!(plan.road, Road::Stay);
}

#[test]
fn a_switch_that_fails_on_the_way_is_undone() {
    let mut heap = heap("ondemand");
    let blocks: Vec<Block> =
        (0..3).map(|_| heap.allocate(Request::of(MIB)).expect("fits")).collect();
    let before = (heap.ledger().live(), heap.stats().bytes_in_use);
    heap.begin_switch(mode("platform"), 0);
    let copies: Vec<Block> =
        blocks[..2].iter().map(|block| heap.duplicate(block, 0).expect("fits")).collect();
    for (block, copy) in blocks.iter().zip(copies) {
        heap.undo_duplicate(block, copy, 0);
    }
    assert!(heap.abort_switch(0));
    assert_eq!((heap.ledger().live(), heap.stats().bytes_in_use), before);
    assert_eq!(heap.mode(), &mode("ondemand"));
    assert_eq!(heap.older_pools().len(), 0);
    blocks.into_iter().for_each(|block| heap.deallocate(block, Stream(0), 0));
}

/// What the runtime does, in small.
fn migrate(heap: &mut Heap, to: &ModeSpec, blocks: Vec<Block>) -> Vec<Block> {
    let plan = switch::plan(heap, to, Policy::Migrate);
    match plan.road {
        Road::SideBySide => {
            heap.begin_switch(to.clone(), 0);
            let mut moved: Vec<Block> = Vec::new();
            for block in &blocks {
                moved.push(heap.duplicate(block, 0).expect("planned"));
            }
            let all = heap.stats();
            assert!(all.peak_pool_bytes >= plan.peak.min(all.pool_bytes));
            blocks.into_iter().for_each(|block| heap.retire(block, 0));
            assert_eq!(heap.stats().pool_bytes, plan.new_pool);
            moved
        }
        Road::ThroughHost => {
            let lifted: Vec<_> = blocks.into_iter().map(|block| heap.lift(block, 0)).collect();
            heap.begin_switch(to.clone(), 0);
            let land = |block| heap.land(block, 0).expect("planned");
            let landed = lifted.into_iter().map(land).collect();
            assert_eq!(heap.stats().pool_bytes, plan.new_pool);
            landed
        }
        Road::Stay => {
            heap.begin_switch(to.clone(), 0);
            blocks
        }
        Road::Refused => blocks,
    }
}

#[test]
fn random_switches_lose_nothing() {
    let mut random = Random::new(3);
    let mut heap = heap("preallocate");
    let mut blocks: Vec<Block> = Vec::new();
    for _ in 0..30_000 {
        match random.below(100) {
            0..50 => {
                if let Ok(block) = heap.allocate(Request::of(random.size(32 * MIB))) {
                    blocks.push(block);
                }
            }
            50..95 if !blocks.is_empty() => {
                let block = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
                heap.deallocate(block, Stream(0), 0);
            }
            95..97 => heap.begin_switch(mode(MODES[random.below(8) as usize]), 0),
            97.. => {
                // The plan counts on the order of making.
                blocks.sort_unstable_by_key(|block| block.id());
                let to = mode(MODES[random.below(8) as usize]);
                blocks = migrate(&mut heap, &to, blocks);
            }
            _ => {}
        }
        let requested: u64 = blocks.iter().map(Block::requested).sum();
        let granted: u64 = blocks.iter().map(Block::granted).sum();
        let stats = heap.stats();
        assert_eq!((stats.requested_bytes, stats.bytes_in_use), (requested, granted));
        assert_eq!(heap.ledger().totals().live_granted, granted);
        assert_eq!(heap.ledger().live_blocks(), blocks.len());
    }
    assert_eq!(heap.check(), Ok(()));
    blocks.into_iter().for_each(|block| heap.deallocate(block, Stream(0), 0));
    heap.trim(0);
    assert_eq!((heap.stats().pool_bytes, heap.device().held), (0, 0));
}
