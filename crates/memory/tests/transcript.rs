//! The figures of the session in which the product is described, cell by cell.

use vramlab_memory::heap::Request;
use vramlab_memory::replay::{Device, Part, Trace, what_if};
use vramlab_memory::{
    Block, Fake, GIB, Heap, MIB, ModeSpec, Policy, Road, Stream, Verdict, oom, switch,
};

const S: Stream = Stream(0);

fn mode(text: &str) -> ModeSpec {
    ModeSpec::parse(text).expect("a valid mode")
}

fn session(text: &str) -> Heap {
    Heap::new(Box::new(Fake::new(GIB)), mode(text))
}

/// Switches as the runtime does it, and says what was planned.
fn switch_to(heap: &mut Heap, to: &str, blocks: Vec<Block>) -> (switch::SwitchPlan, Vec<Block>) {
    let plan = switch::plan(heap, &mode(to), Policy::Migrate);
    let moved = match plan.road {
        Road::SideBySide => {
            heap.begin_switch(mode(to), 0);
            let moved: Vec<Block> =
                blocks.iter().map(|block| heap.duplicate(block, 0).expect("planned")).collect();
            blocks.into_iter().for_each(|block| heap.retire(block, 0));
            moved
        }
        Road::ThroughHost => {
            let lifted: Vec<_> = blocks.into_iter().map(|block| heap.lift(block, 0)).collect();
            heap.begin_switch(mode(to), 0);
            lifted.into_iter().map(|block| heap.land(block, 0).expect("planned")).collect()
        }
        Road::Stay | Road::Refused => {
            heap.begin_switch(mode(to), 0);
            blocks
        }
    };
    assert_eq!(heap.check(), Ok(()));
    (plan, moved)
}

fn figures(plan: &switch::SwitchPlan) -> [u64; 5] {
    [plan.arrays, plan.old_pool, plan.new_pool, plan.peak, plan.capacity]
        .map(|figure| if figure > 1000 { figure / MIB } else { figure })
}

#[test]
fn cells_1_to_4() {
    let mut heap = session("preallocate");
    let a = heap.allocate(Request::of(10 * MIB)).expect("fits");
    let stats = heap.stats();
    assert_eq!((stats.pool_bytes, stats.bytes_limit), (768 * MIB, 768 * MIB));
    assert_eq!(stats.largest_free_block_bytes, 758 * MIB);
    assert_eq!((stats.fragmentation(), stats.driver_allocs), (0.0, 1));

    let (plan, blocks) = switch_to(&mut heap, "ondemand", vec![a]);
    assert_eq!(figures(&plan), [1, 768, 16, 784, 1024]);
    assert_eq!((plan.road, plan.bytes), (Road::SideBySide, 10 * MIB));
    let stats = heap.stats();
    assert_eq!((stats.bytes_in_use, stats.slack_bytes()), (16 * MIB, 6 * MIB));
    assert_eq!((stats.pool_bytes, stats.bytes_limit), (16 * MIB, 768 * MIB));

    let (plan, blocks) = switch_to(&mut heap, "platform", blocks);
    assert_eq!(figures(&plan), [1, 16, 10, 26, 1024]);
    let stats = heap.stats();
    assert_eq!((stats.bytes_in_use, stats.pool_bytes), (10 * MIB, 10 * MIB));
    assert_eq!((stats.bytes_limit, heap.device().held), (GIB, 10 * MIB));
    blocks.into_iter().for_each(|block| heap.deallocate(block, S, 0));
}

#[test]
fn cell_11_has_nothing_to_move() {
    let mut heap = session("platform");
    let (plan, _) = switch_to(&mut heap, "ondemand", Vec::new());
    assert_eq!((plan.road, plan.arrays), (Road::Stay, 0));
    assert_eq!((heap.stats().pool_bytes, heap.stats().bytes_limit), (0, 768 * MIB));
}

fn cell_12(heap: &mut Heap) -> oom::OomReport {
    heap.ledger_mut().begin_cell(0, 12);
    for n in (20..=200).step_by(20) {
        let block = heap.allocate(Request::of(n * MIB)).expect("fits");
        heap.deallocate(block, S, 0);
    }
    let failure = heap.allocate_with(Request::of(400 * MIB), &mut []).expect_err("fragmented");
    let report = heap.explain(&failure, 0);
    heap.ledger_mut().end_cell(0);
    report
}

#[test]
fn cell_12_says_why() {
    let report = cell_12(&mut session("ondemand"));
    assert_eq!(report.verdict, Verdict::Fragmented);
    assert_eq!(
        report.verdict_text(),
        "FRAGMENTED: 0.0 live; 480.0 free in empty regions of 32, 64, 128, 256 that cannot join \
         (largest 256.0, 0.4667); 288.0 left under limit 768.0"
    );
    assert_eq!(report.ladder.len(), 1);
    assert_eq!(report.ladder[0].note.as_deref(), Some("kept (gc=off, as XLA)"));
    for passes in ["preallocate", "ondemand gc=on", "platform", "caching"] {
        assert!(report.passing().contains(&passes.to_string()), "{passes}");
    }
    assert_eq!(report.advice, "remove XLA_PYTHON_CLIENT_PREALLOCATE=false");
}

#[test]
fn cell_13_what_if() {
    let mut heap = session("ondemand");
    cell_12(&mut heap);
    let trace = Trace::from_ledger(heap.ledger(), Part::Cell(12)).expect("the cell is kept");
    assert_eq!(Trace::from_ledger(heap.ledger(), Part::Cell(13)), None);
    let modes = ["preallocate", "ondemand", "ondemand gc=on", "platform", "caching"].map(mode);
    let rows = what_if(&trace, &modes, Device::of(GIB));
    let table: Vec<_> = rows
        .iter()
        .map(|row| {
            let outcome = &row.outcome;
            let failed = outcome.failure.as_ref().map(|failure| failure.asked / MIB);
            let (peak, pool) = (outcome.peak_in_use / MIB, outcome.peak_pool / MIB);
            (failed, peak, pool, outcome.driver_calls, row.smallest_device_mib)
        })
        .collect();
    assert_eq!(
        table,
        [
            (None, 400, 768, 1, Some(534)),
            (Some(400), 256, 480, 4, Some(1174)),
            (None, 512, 512, 9, Some(534)),
            (None, 400, 400, 21, Some(400)),
            (None, 400, 900, 21, Some(400)),
        ]
    );
}

#[test]
fn cells_14_and_15() {
    let mut heap = session("ondemand");
    cell_12(&mut heap);
    switch_to(&mut heap, "ondemand gc=on", Vec::new());
    let big = heap.allocate(Request::of(400 * MIB)).expect("fits");
    let stats = heap.stats();
    assert_eq!((stats.bytes_in_use, stats.slack_bytes()), (512 * MIB, 112 * MIB));
    assert_eq!((stats.pool_bytes, stats.bytes_limit), (512 * MIB, 768 * MIB));
    heap.deallocate(big, S, 0);
}
